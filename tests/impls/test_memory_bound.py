"""The memory-bound operators: what their oracles and tolerances tell apart, and the cost of their cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, reference, tensors

ELEMENTWISE = ("add", "axpby", "scale_relu", "gelu", "silu", "sigmoid", "copy", "select_fused")
ROWS = ("layer_norm", "rms_norm", "row_sum", "cross_entropy", "masked_softmax")
MOVES = ("transpose", "layout_convert")
OPERATORS = (*ELEMENTWISE, *ROWS, *MOVES)
DTYPES = ("float32", "float16", "bfloat16")


def judged(operator: str, dtype: str, dims: dict, wrong: Callable[..., torch.Tensor]) -> bool:
    spec, case = TREE.spec(operator), Case.of(dtype, dims)
    inputs = tensors(spec, case)
    return accepted(spec, case, wrong(**inputs), reference(spec, inputs))


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_exact_answer_is_accepted_in_every_dtype(operator: str) -> None:
    spec = TREE.spec(operator)
    for case in spec.check_cases:
        expected = reference(spec, tensors(spec, case))
        assert accepted(spec, case, expected.to(getattr(torch, case.dtype)), expected), case.label


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_answer_of_zeros_or_with_one_element_gone_is_not(operator: str) -> None:
    spec = TREE.spec(operator)
    for case in spec.check_cases:
        expected = reference(spec, tensors(spec, case))
        if expected.numel() < 2 or not expected.any():  # a sum of nothing, the loss of a single class
            continue
        assert not accepted(spec, case, torch.zeros_like(expected), expected), case.label
        gone = expected.clone()
        gone.view(-1)[torch.nan_to_num(gone.abs(), posinf=0.0).view(-1).argmax()] = 0
        assert not accepted(spec, case, gone, expected), case.label


@pytest.mark.parametrize("operator", OPERATORS)
def test_checks_are_few_and_bench_cases_sorted_into_tiers(operator: str) -> None:
    spec = TREE.spec(operator)
    assert len(spec.check_shapes) <= 8
    assert 4 <= len(spec.bench_shapes) <= 5
    assert len(spec.tiers["small"]) == 1
    assert max(spec.traffic(case).total for case in spec.tiers["small"]) <= 160 << 20


@pytest.mark.parametrize("operator", OPERATORS)
def test_other_seeds_give_other_inputs(operator: str) -> None:
    spec = TREE.spec(operator)
    case = spec.check_cases[-1]
    first, second = (tensors(spec, case, seed) for seed in (0, 1))
    assert not torch.equal(next(iter(first.values())), next(iter(second.values())))


def test_layer_norm_in_half_precision_overflows_and_is_caught() -> None:
    def naive(x, weight, bias):
        deviation = x - x.mean(dim=-1, keepdim=True)
        variance = (deviation * deviation).mean(dim=-1, keepdim=True)  # 400² is beyond float16's 65504
        return deviation / torch.sqrt(variance + 1e-5) * weight + bias

    assert not judged("layer_norm", "float16", {"M": 6, "N": 2048, "layout": "large"}, naive)
    assert judged("layer_norm", "float32", {"M": 6, "N": 2048, "layout": "large"}, naive)


def test_layer_norm_by_the_difference_of_squares_cancels_and_is_caught() -> None:
    def one_pass(x, weight, bias):
        mean = x.mean(dim=-1, keepdim=True)
        variance = (x * x).mean(dim=-1, keepdim=True) - mean * mean
        return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias

    assert not judged("layer_norm", "float32", {"M": 6, "N": 2048, "layout": "shifted"}, one_pass)


def test_rms_norm_in_half_precision_overflows_and_is_caught() -> None:
    def naive(x, weight):
        return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) * weight

    assert not judged("rms_norm", "float16", {"M": 6, "N": 2048, "layout": "large"}, naive)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_near_every_row_sum_is_caught(dtype: str) -> None:
    dims = {"M": 33, "N": 257}
    assert not judged("row_sum", dtype, dims, lambda x: torch.full_like(x[:, 0], float(x.double().sum(1).mean())))


def test_row_sum_without_its_last_element_is_caught() -> None:
    assert not judged("row_sum", "float32", {"M": 7, "N": 1000}, lambda x: x[:, :-1].sum(-1))


def test_cross_entropy_without_the_maximum_overflows_and_is_caught() -> None:
    def naive(x, target):
        return torch.log(torch.exp(x).sum(-1)) - x.gather(1, target[:, None])[:, 0]

    assert judged("cross_entropy", "float32", {"M": 7, "V": 1001}, naive)
    assert not judged("cross_entropy", "float32", {"M": 6, "V": 2048, "layout": "large"}, naive)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_softmax_that_normalises_over_everything_is_caught(dtype: str) -> None:
    def late(x, mask):
        return torch.softmax(x, dim=-1).masked_fill(mask != 0, 0)

    assert not judged("masked_softmax", dtype, {"M": 9, "N": 2048, "layout": "causal"}, late)


def test_gelu_by_tanh_is_another_function() -> None:
    def by_tanh(x):
        return torch.nn.functional.gelu(x, approximate="tanh")

    assert not judged("gelu", "float32", {"N": 8192}, by_tanh)


@pytest.mark.parametrize("dtype", DTYPES)
def test_select_with_its_branches_exchanged_is_caught(dtype: str) -> None:
    def exchanged(x, mask):
        return torch.where(mask == 0, torch.nn.functional.silu(x), x * 0.1)

    assert not judged("select_fused", dtype, {"N": 8192}, exchanged)


def test_scale_relu_that_drops_nan_is_caught() -> None:
    def dropping(x, scale):
        return torch.fmax(x * float(scale), torch.zeros((), dtype=x.dtype))

    assert not judged("scale_relu", "float32", {"N": 5000, "values": "special"}, dropping)


@pytest.mark.parametrize("to", ["nhwc", "nchw"])
def test_layout_convert_of_the_same_bytes_in_the_wrong_order_is_caught(to: str) -> None:
    dims = {"N": 2, "C": 3, "H": 40, "W": 72, "to": to}
    shape = (2, 40, 72, 3) if to == "nhwc" else (2, 3, 40, 72)
    assert not judged("layout_convert", "float32", dims, lambda x, order: x.reshape(shape))


def test_layout_convert_knows_two_orders_only() -> None:
    direction = TREE.load("layout_convert.direction")
    assert direction.is_to_nhwc(torch.tensor([0, 2, 3, 1])) and not direction.is_to_nhwc(torch.tensor([0, 3, 1, 2]))
    with pytest.raises(ValueError, match="expected the order"):
        direction.is_to_nhwc(torch.tensor([3, 2, 1, 0]))
    assert direction.matrices((2, 3, 5, 7), to_nhwc=True) == ((2, 3, 35), (2, 5, 7, 3))
    assert direction.matrices((2, 5, 7, 3), to_nhwc=False) == ((2, 35, 3), (2, 3, 5, 7))
