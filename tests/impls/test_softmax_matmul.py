"""softmax and matmul: the oracles, what their tolerances must refuse, and what of them runs on a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from groundspeed.operator import Case, Operator
from groundspeed.tree import Tree
from tests.paths import python_path

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT / "impls")
SOFTMAX = TREE.spec("softmax")
MATMUL = TREE.spec("matmul")
SPECS = {"softmax": SOFTMAX, "matmul": MATMUL}
LARGE = 1 << 24  # multiply-adds that Triton's interpreter takes in a second or so


def tensors(spec: Operator, case: Case, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), "cpu", **case.dims)
    return {name: entry.tensor for name, entry in made.items()}


def reference(spec: Operator, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return spec.reference(**{name: tensor.double() for name, tensor in inputs.items()})


def accepted(spec: Operator, case: Case, out: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the spec's tolerance covers ``out``, element by element and in the norm; NaN is never covered."""
    tolerance = spec.tolerance[case.dtype]
    error = out.double() - expected
    return bool(
        (error.abs() <= tolerance.atol + tolerance.rtol * expected.abs()).all()
        and error.norm() <= tolerance.norm_bound * expected.norm()
    )


def all_check_cases() -> list:
    return [
        pytest.param(operator, case, id=f"{operator} {case.label}")
        for operator, spec in SPECS.items()
        for case in spec.check_cases
    ]


@pytest.mark.parametrize(("operator", "case"), all_check_cases())
def test_eager_is_within_the_tolerance_on_live_buffers(operator: str, case: Case) -> None:
    spec = SPECS[operator]
    inputs = tensors(spec, case)
    run = TREE.load(f"{operator}.torch_eager").prepare(**inputs)
    first = run()
    for name, tensor in tensors(spec, case, seed=1).items():
        inputs[name].copy_(tensor)
    out, expected = run(), reference(spec, inputs)
    assert str(out.dtype) == f"torch.{case.dtype}" and out.shape == expected.shape and out.is_contiguous()
    assert accepted(spec, case, out, expected)
    assert first.numel() == 0 or first.data_ptr() != out.data_ptr()


@pytest.mark.parametrize("operator", SPECS)
def test_strided_cases_are_not_contiguous_and_others_are(operator: str) -> None:
    for case in SPECS[operator].check_cases:
        first = next(iter(tensors(SPECS[operator], case).values()))
        assert first.is_contiguous() == (case.dims.get("layout") != "strided"), case.label


@pytest.mark.parametrize("operator", SPECS)
def test_an_unknown_layout_is_refused(operator: str) -> None:
    dims = {**SPECS[operator].check_shapes[0], "layout": "diagonal"}
    with pytest.raises(ValueError, match="unknown layout 'diagonal'"):
        tensors(SPECS[operator], Case.of("float32", dims))


@pytest.mark.parametrize("case", SOFTMAX.check_cases, ids=lambda case: case.label)
def test_rows_of_the_softmax_oracle_sum_to_one_and_do_not_feel_a_shift(case: Case) -> None:
    inputs = tensors(SOFTMAX, case)
    expected = reference(SOFTMAX, inputs)
    assert (expected.sum(dim=1) - 1).abs().max().item() < 1e-12 if expected.numel() else True
    shifted = SOFTMAX.reference(x=inputs["x"].double() + 3.0)
    assert torch.allclose(shifted, expected, rtol=1e-9, atol=0)


def test_the_masked_layout_leaves_half_of_every_row_out() -> None:
    inputs = tensors(SOFTMAX, Case.of("float16", {"M": 5, "N": 1000, "layout": "masked"}))
    expected = reference(SOFTMAX, inputs)
    assert torch.isneginf(inputs["x"]).sum(dim=1).eq(500).all()
    assert (expected[:, 1::2] == 0).all() and (expected[:, 0::2] > 0).all()


@pytest.mark.parametrize("dtype", SOFTMAX.dtypes)
def test_the_large_layout_overflows_a_softmax_without_the_maximum(dtype: str) -> None:
    case = Case.of(dtype, {"M": 6, "N": 2048, "layout": "large"})
    inputs = tensors(SOFTMAX, case)
    powers = inputs["x"].float().exp()
    assert not accepted(SOFTMAX, case, powers / powers.sum(dim=1, keepdim=True), reference(SOFTMAX, inputs))


@pytest.mark.parametrize("dtype", SOFTMAX.dtypes)
def test_softmax_tolerance_refuses_zeros_a_wrong_row_and_a_lost_element(dtype: str) -> None:
    case = Case.of(dtype, {"M": 129, "N": 257})
    inputs = tensors(SOFTMAX, case)
    expected = reference(SOFTMAX, inputs)
    shortened = inputs["x"].double()
    shortened[:, -1] = float("-inf")
    lost = SOFTMAX.reference(x=shortened)
    for wrong in (torch.zeros_like(expected), expected.roll(1, dims=0), lost):
        assert not accepted(SOFTMAX, case, wrong, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_tolerance_refuses_a_sum_in_16_bits(dtype: str) -> None:
    case = Case.of(dtype, {"M": 4, "N": 4096})
    inputs = tensors(SOFTMAX, case)
    x = inputs["x"]
    powers = (x - x.max(dim=1, keepdim=True).values).exp()
    total = torch.zeros((4, 1), dtype=x.dtype)
    for column in range(4096):
        total = total + powers[:, column : column + 1]
    assert not accepted(SOFTMAX, case, powers / total, reference(SOFTMAX, inputs))


def rounded_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Float32 rounded to 10 stored bits of mantissa, to nearest."""
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("shape", [(17, 19, 23), (128, 128, 128), (64, 64, 2048)])
def test_tf32_is_caught_in_a_float32_matmul(shape: tuple[int, int, int]) -> None:
    case = Case.of("float32", dict(zip("MNK", shape, strict=True)))
    inputs = tensors(MATMUL, case)
    expected = reference(MATMUL, inputs)
    lowered = {name: rounded_to_tf32(tensor) for name, tensor in inputs.items()}
    out = reference(MATMUL, lowered)
    relative = ((out - expected).norm() / expected.norm()).item()
    assert 1e-4 < relative < 6e-4  # the figure that the spec's tolerance is derived against
    assert not accepted(MATMUL, case, out, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("inner", [2048, 8192])
def test_accumulation_in_16_bits_is_caught_even_with_exact_sums_of_16_products(dtype: str, inner: int) -> None:
    case = Case.of(dtype, {"M": 64, "N": 64, "K": inner})
    inputs = tensors(MATMUL, case)
    expected = reference(MATMUL, inputs)
    total = torch.zeros((64, 64), dtype=inputs["a"].dtype)
    for first in range(0, inner, 16):
        step = slice(first, first + 16)
        total = (total.double() + inputs["a"][:, step].double() @ inputs["b"][step].double()).to(total.dtype)
    assert not accepted(MATMUL, case, total, expected)


def test_float32_accumulated_one_product_after_another_is_accepted() -> None:
    case = Case.of("float32", {"M": 64, "N": 64, "K": 8192})
    inputs = tensors(MATMUL, case)
    total = torch.zeros((64, 64))
    for k in range(8192):
        total.addr_(inputs["a"][:, k], inputs["b"][k])
    assert accepted(MATMUL, case, total, reference(MATMUL, inputs))


@pytest.mark.parametrize("dtype", MATMUL.dtypes)
def test_matmul_tolerance_refuses_zeros_a_transposed_factor_and_a_lost_product(dtype: str) -> None:
    case = Case.of(dtype, {"M": 128, "N": 128, "K": 128})
    inputs = tensors(MATMUL, case)
    expected = reference(MATMUL, inputs)
    transposed = reference(MATMUL, {**inputs, "b": inputs["b"].T})
    lost = inputs["a"][:, :-1].double() @ inputs["b"][:-1].double()
    for wrong in (torch.zeros_like(expected), transposed, lost):
        assert not accepted(MATMUL, case, wrong, expected)


def test_an_empty_sum_is_zero() -> None:
    expected = reference(MATMUL, tensors(MATMUL, Case.of("float32", {"M": 5, "N": 3, "K": 0})))
    assert expected.shape == (5, 3) and (expected == 0).all()


@pytest.mark.parametrize(
    ("module", "case", "reason"),
    [
        ("softmax.cuda_warp", Case.of("float32", {"M": 2, "N": 4097}), "one warp's registers"),
        ("softmax.cuda_warp", Case.of("float32", {"M": 2, "N": 4096, "layout": "strided"}), None),
        ("softmax.cuda_pipeline", Case.of("float16", {"M": 2, "N": 32769}), "one block's registers"),
        ("softmax.cuda_pipeline", Case.of("float16", {"M": 2, "N": 32768}), None),
        ("matmul.cuda_mma", Case.of("float32", {"M": 8, "N": 8, "K": 8}), "tf32"),
        ("matmul.cuda_mma", Case.of("float16", {"M": 7, "N": 7, "K": 7}), None),
        ("matmul.cuda_wgmma", Case.of("bfloat16", {"M": 8, "N": 12, "K": 8}), "multiples of 16 bytes"),
        ("matmul.cuda_wgmma", Case.of("bfloat16", {"M": 8, "N": 8, "K": 0}), "empty matrix"),
    ],
    ids=lambda value: value.label if isinstance(value, Case) else None,
)
def test_what_cannot_be_computed_says_why(module: str, case: Case, reason: str | None) -> None:
    said = TREE.load(module).unsupported(case.dtype, **case.dims)
    assert said is None if reason is None else reason in said


@pytest.mark.parametrize("operator", SPECS)
def test_ladders_name_implementations_that_exist_and_state_an_idea(operator: str) -> None:
    found = {implementation.name: implementation for implementation in TREE.implementations(operator)}
    for rungs in SPECS[operator].ladders.values():
        assert set(rungs) <= set(found)
    for implementation in found.values():
        assert 20 <= len(implementation.idea) <= 120, implementation.name


def small_check_cases(operator: str) -> list[Case]:
    """The check cases that the interpreter takes in a second or so."""
    spec = SPECS[operator]
    return [case for case in spec.check_cases if spec.flop_count(case) <= LARGE]


@pytest.mark.parametrize(("operator", "implementation"), [("softmax", "triton_row"), ("matmul", "triton_block")])
def test_triton_in_its_interpreter(operator: str, implementation: str) -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": python_path()}
    done = subprocess.run(
        [sys.executable, __file__, operator, implementation],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["checked", str(len(small_check_cases(operator)))]


def check_small_cases(operator: str, implementation: str) -> int:
    """Raise for the first small check case that is not accepted; else how many there were."""
    spec = SPECS[operator]
    module = TREE.load(f"{operator}.{implementation}")
    if hasattr(module, "configs"):
        del module.configs[1:]
    for case in small_check_cases(operator):
        inputs = tensors(spec, case)
        out, expected = module.prepare(**inputs)(), reference(spec, inputs)
        if out.shape != expected.shape or not accepted(spec, case, out, expected):
            raise SystemExit(f"{operator}/{implementation} {case.label}: outside the tolerance")
    return len(small_check_cases(operator))


if __name__ == "__main__":
    print("checked", check_small_cases(*sys.argv[1:]))
