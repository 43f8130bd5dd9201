"""relu and normalize_color: the oracle, the ranges their tolerance rests on, and what of them runs on a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from groundspeed.operator import Case, Operator
from groundspeed.tree import Tree
from tests.paths import python_path

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT / "impls")
RELU = TREE.spec("relu")
COLOR = TREE.spec("normalize_color")
SPECS = {"relu": RELU, "normalize_color": COLOR}


def tensors(spec: Operator, case: Case, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), "cpu", **case.dims)
    return {name: entry.tensor for name, entry in made.items()}


def reference(spec: Operator, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return spec.reference(**{name: tensor.double() for name, tensor in inputs.items()})


def accepted(spec: Operator, case: Case, out: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the spec's tolerance covers ``out``: element by element, in the norm, and at special values."""
    tolerance = spec.tolerance[case.dtype]
    out, finite = out.double(), torch.isfinite(expected)
    special = ~finite
    if not torch.equal(torch.nan_to_num(out[special], nan=-1.0), torch.nan_to_num(expected[special], nan=-1.0)):
        return False
    error, size = (out - expected)[finite], expected[finite]
    return bool(
        (error.abs() <= tolerance.atol + tolerance.rtol * size.abs()).all()
        and error.norm() <= tolerance.norm_bound * size.norm()
    )


def prepared(operator: str, implementation: str, inputs: dict[str, torch.Tensor]) -> Callable[[], torch.Tensor]:
    return TREE.load(f"{operator}.{implementation}").prepare(**inputs)


def check_cases(operator: str) -> list:
    return [pytest.param(case, id=case.label) for case in SPECS[operator].check_cases]


@pytest.mark.parametrize("case", check_cases("relu"))
def test_relu_eager_is_exact_and_reads_the_live_buffer(case: Case) -> None:
    inputs = tensors(RELU, case)
    run = prepared("relu", "torch_eager", inputs)
    first = run()
    inputs["x"].copy_(tensors(RELU, case, seed=1)["x"])
    out, expected = run(), reference(RELU, inputs)
    assert out.dtype == inputs["x"].dtype and out.shape == expected.shape
    assert accepted(RELU, case, out, expected)
    assert first.numel() == 0 or first.data_ptr() != out.data_ptr()


@pytest.mark.parametrize("dtype", RELU.dtypes)
def test_relu_oracle_keeps_nan_and_tells_a_maximum_that_drops_it(dtype: str) -> None:
    case = next(case for case in RELU.check_cases if case.dtype == dtype and case.dims.get("values") == "special")
    inputs = tensors(RELU, case)
    x, expected = inputs["x"], reference(RELU, inputs)
    assert torch.isnan(x).any() and torch.isinf(x).any()
    assert torch.equal(torch.isnan(expected), torch.isnan(x))
    dropped = torch.fmax(x, torch.zeros((), dtype=x.dtype))
    assert not accepted(RELU, case, dropped, expected)


def test_relu_without_a_tail_is_caught() -> None:
    case = Case.of("float32", {"N": 12345})
    inputs = tensors(RELU, case)
    inputs["x"][-1] = 1.0  # 12345 is one element more than whole vectors hold
    out, expected = torch.relu(inputs["x"]), reference(RELU, inputs)
    assert accepted(RELU, case, out, expected)
    out[-1] = 0
    assert not accepted(RELU, case, out, expected)


@pytest.mark.parametrize("operator", SPECS)
def test_layouts_are_what_they_say(operator: str) -> None:
    for case in SPECS[operator].check_cases:
        x = tensors(SPECS[operator], case)["x"]
        layout = case.dims.get("layout", "contiguous")
        assert x.is_contiguous() == (layout != "strided"), case.label
        assert (x.data_ptr() % 16 != 0) == (layout == "offset"), case.label


@pytest.mark.parametrize("dtype", COLOR.dtypes)
def test_color_inputs_stay_in_the_ranges_that_the_tolerance_rests_on(dtype: str) -> None:
    u = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    case = Case.of(dtype, {"N": 2, "H": 37, "W": 41})
    for seed in range(50):
        x, mean, std, M = (tensor.double() for tensor in tensors(COLOR, case, seed).values())
        z = (x - mean) / std
        slack = 1 + 4 * u  # the weights were rounded to the dtype
        folded = M / std[:, None]
        assert x.min() >= 0 and x.max() <= 1
        assert z.abs().max() <= 2.4 * slack and z.abs().min() >= 0.42 / slack - 2 * u
        assert M.abs().sum(0).max() <= 2 * slack
        assert folded.abs().sum(0).max() <= 8 * slack and (mean @ folded).abs().max() <= 4.8 * slack
        assert torch.linalg.svdvals(M).min() >= 0.5 / slack
        assert ((M * M.T)[~torch.eye(3, dtype=torch.bool)] < 0).all()


@pytest.mark.parametrize("dtype", COLOR.dtypes)
def test_color_tells_a_transposed_matrix_a_missing_pixel_and_zeros(dtype: str) -> None:
    case = Case.of(dtype, {"N": 1, "H": 5, "W": 7})
    for seed in range(50):
        inputs = tensors(COLOR, case, seed)
        expected = reference(COLOR, inputs)
        transposed = reference(COLOR, {**inputs, "M": inputs["M"].T})
        missing = expected.clone()
        missing[-1, -1, -1] = 0
        assert accepted(COLOR, case, expected, expected)
        for wrong in (transposed, missing, torch.zeros_like(expected)):
            assert not accepted(COLOR, case, wrong, expected)


@pytest.mark.parametrize("implementation", ["torch_eager", "torch_jit", "torch_affine"])
@pytest.mark.parametrize("case", check_cases("normalize_color"))
def test_color_in_torch_is_within_the_tolerance_on_live_buffers(implementation: str, case: Case) -> None:
    module = TREE.load(f"normalize_color.{implementation}")
    reason = module.unsupported(case.dtype, **case.dims) if hasattr(module, "unsupported") else None
    if reason:
        pytest.skip(reason)
    inputs = tensors(COLOR, case)
    run = module.prepare(**inputs)
    run()
    inputs["x"].copy_(tensors(COLOR, case, seed=1)["x"])
    out, expected = run(), reference(COLOR, inputs)
    assert out.dtype == inputs["x"].dtype and out.shape == expected.shape and out.is_contiguous()
    assert accepted(COLOR, case, out, expected)


@pytest.mark.parametrize("implementation", ["torch_eager", "torch_affine"])
@pytest.mark.parametrize("dtype", COLOR.dtypes)
def test_color_tolerance_holds_for_one_pixel_whatever_the_draw(implementation: str, dtype: str) -> None:
    case = Case.of(dtype, {"N": 1, "H": 1, "W": 1})
    for seed in range(300):
        inputs = tensors(COLOR, case, seed)
        out = prepared("normalize_color", implementation, inputs)()
        assert accepted(COLOR, case, out, reference(COLOR, inputs)), f"seed {seed}"


def test_folding_is_the_same_function() -> None:
    inputs = tensors(COLOR, Case.of("float32", {"N": 1, "H": 5, "W": 7}))
    x, mean, std, M = inputs.values()
    affine = TREE.load("normalize_color.affine")
    folded, bias = affine.fold(mean, std, M)
    torch.testing.assert_close(x.double() @ folded + bias, reference(COLOR, inputs), rtol=0, atol=1e-14)
    packed = affine.fold_packed(mean, std, M)
    assert packed.dtype == torch.float32 and torch.equal(packed[:9].view(3, 3), folded.float())
    assert torch.equal(packed[9:], bias.float())


@pytest.mark.parametrize("operator", SPECS)
def test_ladders_name_implementations_that_exist_and_state_an_idea(operator: str) -> None:
    found = {implementation.name: implementation for implementation in TREE.implementations(operator)}
    for rungs in SPECS[operator].ladders.values():
        assert set(rungs) <= set(found)
    for implementation in found.values():
        assert 20 <= len(implementation.idea) <= 120, implementation.name


@pytest.mark.parametrize(
    ("operator", "implementation"), [("relu", "triton_block"), ("normalize_color", "triton_pixel")]
)
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
    assert done.stdout.split() == ["checked", str(len(SPECS[operator].check_cases))]


def check_every_case(operator: str, implementation: str) -> int:
    """Raise for the first check case that is not accepted; else how many there were."""
    spec = SPECS[operator]
    for case in spec.check_cases:
        inputs = tensors(spec, case)
        out, expected = prepared(operator, implementation, inputs)(), reference(spec, inputs)
        if out.dtype != inputs["x"].dtype or out.shape != expected.shape or not accepted(spec, case, out, expected):
            raise SystemExit(f"{operator}/{implementation} {case.label}: outside the tolerance")
    return len(spec.check_cases)


if __name__ == "__main__":
    print("checked", check_every_case(*sys.argv[1:]))
