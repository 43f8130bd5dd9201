"""The transformer layer: what its oracle and tolerance tell apart, and how parameters are packed for its kernels."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, reference, tensors

SPEC = TREE.spec("transformer_layer")
EAGER = TREE.load("transformer_layer.torch_eager")
DIMS = {"B": 2, "S": 24, "D": 64, "H": 4, "F": 160}
DTYPES = ("float16", "bfloat16")


def wide(case: Case) -> dict[str, torch.Tensor]:
    return {n: t.double() if t.is_floating_point() else t for n, t in tensors(SPEC, case).items()}


def test_the_eager_layer_is_the_oracle_in_float64() -> None:
    inputs = wide(Case.of("float16", DIMS))
    torch.testing.assert_close(EAGER.prepare(**inputs)(), SPEC.reference(**inputs))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("implementation", ["torch_eager", "torch_sdpa"])
def test_library_calls_are_accepted_on_live_buffers(implementation: str, dtype: str) -> None:
    case = Case.of(dtype, DIMS)
    inputs = tensors(SPEC, case)
    run = TREE.load(f"transformer_layer.{implementation}").prepare(**inputs)
    run()
    inputs["x"].copy_(tensors(SPEC, case, seed=1)["x"])
    assert accepted(SPEC, case, run(), reference(SPEC, inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_faults_of_attention_and_of_the_mlp_are_refused(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.of(dtype, DIMS)
    inputs = wide(case)
    expected = SPEC.reference(**inputs)
    x, p = inputs["x"], {name: value for name, value in inputs.items() if name not in ("x", "heads")}
    mask = EAGER.causal_mask(x)
    without = {name: {**p, name: torch.zeros_like(value)} for name, value in p.items() if name.endswith("bias")}
    outputs = {
        "no mask": EAGER.layer(x, p, 4, torch.zeros_like(mask)),
        "mask off by one": EAGER.layer(x, p, 4, torch.ones_like(mask).triu(2)),
        "half the heads": EAGER.layer(x, p, 2, mask),
        "queries and keys exchanged": EAGER.layer(x, {**p, "query": p["key"], "key": p["query"]}, 4, mask),
        "ReLU for GELU": _with_gelu(monkeypatch, torch.relu, x, p, mask),
        "no residual": expected - x,
    }
    for name in ("query_bias", "value_bias", "output_bias", "up_bias", "down_bias", "norm1_bias", "norm2_bias"):
        outputs[f"no {name}"] = EAGER.layer(x, without[name], 4, mask)
    assert accepted(SPEC, case, EAGER.layer(x, p, 4, mask), expected)
    assert not [name for name, out in outputs.items() if accepted(SPEC, case, out, expected)]


def _with_gelu(monkeypatch, gelu, x, p, mask):
    with monkeypatch.context() as patched:
        patched.setattr(EAGER.functional, "gelu", gelu)
        return EAGER.layer(x, p, 4, mask)


def test_a_key_bias_is_no_fault_that_anybody_could_see() -> None:
    """It adds the same to all scores of a query: softmax takes it out."""
    inputs = wide(Case.of("float16", DIMS))
    without = SPEC.reference(**{**inputs, "key_bias": torch.zeros_like(inputs["key_bias"])})
    torch.testing.assert_close(without, SPEC.reference(**inputs))


def test_packed_projections_are_the_three_side_by_side() -> None:
    packed = TREE.load("transformer_layer.packed")
    inputs = tensors(SPEC, Case.of("float16", DIMS))
    x = inputs["x"].double().view(-1, 64)
    matrix, bias = packed.packed_projections(inputs)
    parts = packed.in_heads(x @ matrix.double() + bias.double(), 2, 24, 4)
    for name, part in zip(packed.NAMES, parts, strict=True):
        alone = x @ inputs[name].double() + inputs[f"{name}_bias"].double()
        torch.testing.assert_close(part, alone.view(2, 24, 4, 16).transpose(1, 2))


@pytest.mark.parametrize("parts", [1, 4])
def test_an_mlp_in_parts_adds_up(parts: int) -> None:
    companion = TREE.load("transformer_layer.cuda_fused")
    p = {name: value for name, value in wide(Case.of("float16", DIMS)).items() if name not in ("x", "heads")}
    x = torch.randn((7, 64), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    up, up_bias, down, down_bias = companion.packed_mlp(p, parts)
    assert up.shape == (parts, 64, 160 // parts) and down.shape == (parts, 160 // parts, 64)
    assert up.is_contiguous() and down.is_contiguous()
    activated = [functional.gelu(x @ part + bias) for part, bias in zip(up, up_bias.chunk(parts), strict=True)]
    total = sum(a @ part + bias for a, part, bias in zip(activated, down, down_bias, strict=True))
    torch.testing.assert_close(total, EAGER.feed_forward(x, p))


@pytest.mark.parametrize(
    ("rows", "inner", "parts"), [(512, 4096, 4), (4096, 4096, 1), (512, 4100, 1), (1, 64, 4), (130, 136, 1)]
)
def test_an_mlp_is_parted_where_its_tiles_leave_the_gpu_idle(rows: int, inner: int, parts: int) -> None:
    assert TREE.load("transformer_layer.cuda_fused").mlp_parts(rows, 1024, inner, 132) == parts
