"""The convolutions: what their oracles and tolerances tell apart, and how weights are packed for their kernels."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from groundspeed.measure.datasheet import Peak
from groundspeed.measure.incredible import too_fast
from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, reference, tensors

SPEC = TREE.spec("conv_bn_relu_add")
DTYPES = ("float32", "float16", "bfloat16")
SHAPE = {"N": 2, "C": 24, "O": 40, "H": 9, "W": 12}


def rounded_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def oracle(changed: dict[str, torch.Tensor]) -> torch.Tensor:
    return SPEC.reference(**{name: tensor.double() for name, tensor in changed.items()})


def test_tf32_is_refused() -> None:
    case = Case.of("float32", SHAPE)
    inputs = tensors(SPEC, case)
    lowered = {**inputs, "x": rounded_to_tf32(inputs["x"]), "filters": rounded_to_tf32(inputs["filters"])}
    assert not accepted(SPEC, case, oracle(lowered), reference(SPEC, inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_faults_at_an_edge_in_the_statistics_and_in_the_order_of_steps_are_refused(dtype: str) -> None:
    case = Case.of(dtype, SHAPE)
    inputs = {name: tensor.double() for name, tensor in tensors(SPEC, case).items()}
    expected = SPEC.reference(**inputs)
    x, residual = inputs["x"], inputs["residual"]

    def normalised(images: torch.Tensor, padding: int) -> torch.Tensor:
        convolved = functional.conv2d(images, inputs["filters"], padding=padding)
        statistics = (inputs[name] for name in ("mean", "variance", "gamma", "beta"))
        return functional.batch_norm(convolved, *statistics, eps=1e-5)

    around = functional.pad(x, (1, 1, 1, 1), mode="circular")
    faults = {
        "neighbours beyond the edge": torch.relu(normalised(around, 0)) + residual,
        "flipped filters": oracle({**inputs, "filters": inputs["filters"].flip(2, 3)}),
        "one channel lost": oracle({**inputs, "x": torch.cat([x[:, :-1], torch.zeros_like(x[:, :1])], dim=1)}),
        "no mean": oracle({**inputs, "mean": torch.zeros_like(inputs["mean"])}),
        "no ReLU": normalised(x, 1) + residual,
        "residual before the ReLU": torch.relu(normalised(x, 1) + residual),
    }
    for name, wrong in faults.items():
        assert not accepted(SPEC, case, wrong, expected), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_filters_for_cuda_give_the_convolution_back(dtype: str) -> None:
    """Slice by slice, as the kernels do: [channels / depth][taps] of a matrix with padded sides."""
    packed = TREE.load("_cuda.conv_weights").packed
    inputs = tensors(SPEC, Case.of(dtype, {"N": 1, "C": 70, "O": 65, "H": 4, "W": 5}))
    x, filters = inputs["x"], inputs["filters"]
    slices = packed(filters)
    depth = 8 if dtype == "float32" else 64
    assert slices.shape == ((9, 9, 8, 128) if dtype == "float32" else (2, 9, 128, 64))
    planes = torch.zeros((1, slices.shape[0] * depth, 4, 5), dtype=torch.float64)
    planes[:, :70] = x.double()
    columns = functional.unfold(planes, 3, padding=1).unflatten(1, (slices.shape[0], depth, 9))
    pattern = "btdo,bdtp->op" if dtype == "float32" else "btod,bdtp->op"
    result = torch.einsum(pattern, slices.double(), columns[0])
    expected = functional.conv2d(x.double(), filters.double(), padding=1)[0].flatten(1)
    torch.testing.assert_close(result[:65], expected)
    assert not result[65:].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_filters_for_triton_give_the_convolution_back(dtype: str) -> None:
    pytest.importorskip("triton")
    packed = TREE.load("_triton.convolution").packed
    inputs = tensors(SPEC, Case.of(dtype, {"N": 1, "C": 5, "O": 18, "H": 4, "W": 5}))
    rows = packed(inputs["filters"])
    assert rows.shape == (9 * 16, 32)
    planes = torch.zeros((1, 16, 4, 5), dtype=torch.float64)
    planes[:, :5] = inputs["x"].double()
    columns = functional.unfold(planes, 3, padding=1).unflatten(1, (16, 9))[0].transpose(0, 1).flatten(0, 1)
    expected = functional.conv2d(inputs["x"].double(), inputs["filters"].double(), padding=1)[0].flatten(1)
    torch.testing.assert_close((rows.double().T @ columns)[:18], expected)
    assert not rows[:, 18:].any()


def test_folding_is_the_same_as_normalising() -> None:
    inputs = tensors(SPEC, Case.of("float32", SHAPE))
    names = ("gamma", "beta", "mean", "variance")
    scale, shift = TREE.load("conv_bn_relu_add.fold").scale_and_shift(*(inputs[name] for name in names))
    z = torch.randn((2, 40, 3, 3), generator=torch.Generator().manual_seed(1))
    normalised = functional.batch_norm(z, inputs["mean"], inputs["variance"], inputs["gamma"], inputs["beta"], eps=1e-5)
    torch.testing.assert_close(z * scale[:, None, None] + shift[:, None, None], normalised)


BOTTLENECK = TREE.spec("resnet_bottleneck")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bottleneck_without_a_step_is_refused(dtype: str) -> None:
    case = Case.of(dtype, {"N": 2, "C": 12, "E": 40, "H": 9, "W": 12})
    inputs = {name: tensor.double() for name, tensor in tensors(BOTTLENECK, case).items()}
    expected = BOTTLENECK.reference(**inputs)
    x = inputs["x"]
    narrow = functional.conv2d(x, inputs["reduce"], inputs["reduce_bias"])
    filtered = functional.conv2d(torch.relu(narrow), inputs["spatial"], inputs["spatial_bias"], padding=1)
    unrectified = functional.conv2d(narrow, inputs["spatial"], inputs["spatial_bias"], padding=1)

    def end(images: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(images, inputs["expand"], inputs["expand_bias"])

    faults = {
        "residual after the last ReLU": torch.relu(end(torch.relu(filtered))) + x,
        "no residual": torch.relu(end(torch.relu(filtered))),
        "no second ReLU": torch.relu(end(filtered) + x),
        "no first ReLU": torch.relu(end(torch.relu(unrectified)) + x),
        "no last bias": BOTTLENECK.reference(**{**inputs, "expand_bias": torch.zeros_like(inputs["expand_bias"])}),
    }
    assert accepted(BOTTLENECK, case, torch.relu(end(torch.relu(filtered)) + x), expected)
    for name, wrong in faults.items():
        assert not accepted(BOTTLENECK, case, wrong, expected), name


def test_tf32_is_refused_in_a_bottleneck() -> None:
    case = Case.of("float32", {"N": 2, "C": 12, "E": 40, "H": 9, "W": 12})
    inputs = tensors(BOTTLENECK, case)
    lowered = {name: (tensor if "bias" in name else rounded_to_tf32(tensor)) for name, tensor in inputs.items()}
    wrong = BOTTLENECK.reference(**{name: tensor.double() for name, tensor in lowered.items()})
    assert not accepted(BOTTLENECK, case, wrong, reference(BOTTLENECK, inputs))


@pytest.mark.parametrize("operator", ["conv_bn_relu_add", "resnet_bottleneck"])
def test_a_time_of_winograd_s_algorithm_is_not_called_impossible(operator: str) -> None:
    """cuDNN takes it for float32: it may beat the data sheet's rate by the operations that are counted."""
    spec = TREE.spec(operator)
    peak = Peak(bandwidth=1e18, flops={"float32": 67e12})
    for case in spec.tier_cases("core"):
        counted, fewest = (1e9 * count / 67e12 for count in (spec.flop_count(case), spec.fewest_flop_count(case)))
        assert fewest < counted <= 4 * fewest * 1.001
        wide = Case("float32", case.shape)
        assert too_fast(spec, wide, (counted + fewest) / 2, peak, 60 << 20) is None
        fault = too_fast(spec, wide, 0.99 * fewest, peak, 60 << 20)
        assert fault is not None and fault.failure == "impossible"


@pytest.mark.parametrize(
    ("outputs", "side", "channels", "wanted"),
    [
        (256, 1, 64, {(128, 64), (128, 128)}),  # one step: the epilogue and its residual
        (256, 1, 128, {(128, 64), (128, 128)}),
        (256, 1, 256, {(128, 128), (256, 128)}),
        (256, 3, 64, {(128, 128), (256, 128)}),
        (64, 1, 64, {(128, 64), (256, 64)}),
    ],
)
def test_a_product_of_few_steps_gets_small_tiles(outputs: int, side: int, channels: int, wanted: set) -> None:
    pytest.importorskip("triton")
    convolution = TREE.load("_triton.convolution")
    arguments = {"outputs": outputs, "pixels": 1 << 20, "source": torch.empty(0, dtype=torch.float16)}
    chosen = convolution.pruned(convolution.configs, arguments, SIDE=side, PADDED=channels, DEPTH=64)
    assert {(one.kwargs["PIXELS"], one.kwargs["OUTPUTS"]) for one in chosen} == wanted


@pytest.mark.parametrize(
    ("dtype", "channels", "reason"),
    [
        ("float16", 128, None),
        ("bfloat16", 113, None),  # padded to 128
        ("float16", 129, "at most 128"),
        ("float32", 64, "CUDA cores"),
    ],
)
def test_two_launches_are_for_as_many_channels_as_a_program_holds(
    dtype: str, channels: int, reason: str | None
) -> None:
    pytest.importorskip("triton")
    said = TREE.load("resnet_bottleneck.triton_tail").unsupported(dtype, N=1, C=channels, E=8, H=3, W=3)
    assert said is None if reason is None else reason in said
