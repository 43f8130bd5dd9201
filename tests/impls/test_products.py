"""The operators built on a product: what their tolerances must tell apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, reference, tensors

OPERATORS = ("matmul_gelu", "matmul_pair", "qkv_projection", "swiglu_mlp")
DTYPES = ("float32", "float16", "bfloat16")
GELU = {"M": 64, "N": 64, "K": 1024}
SWIGLU = {"T": 64, "D": 1024, "H": 128}

Answer = torch.Tensor | tuple[torch.Tensor, ...]


def parts(answer: Answer) -> tuple[torch.Tensor, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def judged(operator: str, dtype: str, dims: dict, wrong: Callable[..., Answer]) -> bool:
    """Whether every output of ``wrong``, computed in float64 and rounded at the end, is accepted."""
    spec, case = TREE.spec(operator), Case.of(dtype, dims)
    inputs = tensors(spec, case)
    outs = parts(wrong(**{name: tensor.double() for name, tensor in inputs.items()}))
    expected = parts(reference(spec, inputs))
    rounded = [out.to(getattr(torch, dtype)) for out in outs]
    return all(accepted(spec, case, out, ref) for out, ref in zip(rounded, expected, strict=True))


def rounded_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Float64 holding float32 values, rounded to 10 stored bits of mantissa."""
    bits = tensor.float().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).double()


def summed_in(dtype: torch.dtype, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """A product whose sum is rounded after every 16 terms, which themselves are added exactly."""
    total = torch.zeros((left.shape[0], right.shape[1]), dtype=dtype)
    for first in range(0, left.shape[1], 16):
        step = slice(first, first + 16)
        total = (total.double() + left[:, step] @ right[step]).to(dtype)
    return total.double()


gelu, silu = torch.nn.functional.gelu, torch.nn.functional.silu


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_rounded_answer_is_accepted_and_zeros_are_not(operator: str) -> None:
    spec = TREE.spec(operator)
    for case in spec.check_cases:
        for expected in parts(reference(spec, tensors(spec, case))):
            assert accepted(spec, case, expected.to(getattr(torch, case.dtype)), expected), case.label
            if expected.any():
                assert not accepted(spec, case, torch.zeros_like(expected), expected), case.label


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_without_its_bias_or_with_the_bias_behind_it_is_caught(dtype: str) -> None:
    assert judged("matmul_gelu", dtype, GELU, lambda a, b, bias: gelu(a @ b + bias))
    assert not judged("matmul_gelu", dtype, GELU, lambda a, b, bias: gelu(a @ b))
    assert not judged("matmul_gelu", dtype, GELU, lambda a, b, bias: gelu(a @ b) + bias)
    assert not judged("matmul_gelu", dtype, GELU, lambda a, b, bias: a @ b + bias)


def test_gelu_by_tanh_is_another_function() -> None:
    assert not judged("matmul_gelu", "float32", GELU, lambda a, b, bias: gelu(a @ b + bias, approximate="tanh"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounding_before_the_activation_is_accepted(dtype: str) -> None:
    narrow = getattr(torch, dtype)
    assert judged("matmul_gelu", dtype, GELU, lambda a, b, bias: gelu((a @ b + bias).to(narrow).double()))
    assert judged("matmul_gelu", dtype, GELU, lambda a, b, bias: gelu((a @ b).to(narrow).double() + bias))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_accumulation_in_16_bits_is_caught(dtype: str) -> None:
    narrow = getattr(torch, dtype)
    deep = {"M": 32, "N": 32, "K": 2048}

    def lowered(a, b, bias):
        return gelu(summed_in(narrow, a, b) + bias)

    def gated(x, gate, up, down):
        return (silu(summed_in(narrow, x, gate)) * summed_in(narrow, x, up)) @ down

    assert not judged("matmul_gelu", dtype, deep, lowered)
    assert not judged("swiglu_mlp", dtype, SWIGLU, gated)


def test_tf32_is_caught_in_float32() -> None:
    def lowered(a, b, bias):
        return gelu(rounded_to_tf32(a) @ rounded_to_tf32(b) + bias)

    def gated(x, gate, up, down):
        x, gate, up = (rounded_to_tf32(tensor) for tensor in (x, gate, up))
        return (silu(x @ gate) * (x @ up)) @ down

    assert not judged("matmul_gelu", "float32", GELU, lowered)
    assert not judged("swiglu_mlp", "float32", SWIGLU, gated)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gate_that_multiplies_the_wrong_operand_is_caught(dtype: str) -> None:
    assert judged("swiglu_mlp", dtype, SWIGLU, lambda x, gate, up, down: (silu(x @ gate) * (x @ up)) @ down)
    assert not judged("swiglu_mlp", dtype, SWIGLU, lambda x, gate, up, down: (silu(x @ gate) * (x @ gate)) @ down)
    assert not judged("swiglu_mlp", dtype, SWIGLU, lambda x, gate, up, down: (silu(x @ up) * (x @ gate)) @ down)
    assert not judged("swiglu_mlp", dtype, SWIGLU, lambda x, gate, up, down: silu(x @ gate) @ down)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outputs_exchanged_are_caught(dtype: str) -> None:
    pair, three = {"M": 7, "N": 33, "K": 65}, {"T": 7, "D": 65, "N": 33}
    assert judged("matmul_pair", dtype, pair, lambda a1, b1, a2, b2: (a1 @ b1, a2 @ b2))
    assert not judged("matmul_pair", dtype, pair, lambda a1, b1, a2, b2: (a1 @ b1, a1 @ b2))
    assert judged("qkv_projection", dtype, three, lambda x, wq, wk, wv: (x @ wq, x @ wk, x @ wv))
    assert not judged("qkv_projection", dtype, three, lambda x, wq, wk, wv: (x @ wq, x @ wv, x @ wk))


def test_layouts_are_what_they_say() -> None:
    for operator in OPERATORS:
        for case in TREE.spec(operator).check_cases:
            first = next(iter(tensors(TREE.spec(operator), case).values()))
            layout = case.dims.get("layout", "contiguous")
            assert first.is_contiguous() == (layout != "strided"), case.label
            assert (first.data_ptr() % 16 != 0) == (layout == "offset"), case.label


def test_tiles_worth_timing_fill_the_gpu_and_are_few() -> None:
    product = TREE.load("_triton.product")
    for dtype in (torch.float32, torch.float16):
        for M, N in ((1, 1), (512, 512), (2048, 1024), (8192, 8192)):
            arguments = {"a": torch.empty((1, 1), dtype=dtype), "M": M, "N": N}
            for sides in (1, 2):
                chosen = product.pruned(product.configs(sides), arguments)
                assert 1 <= len(chosen) <= 3
                assert all((one.kwargs["BLOCK_K"] == 32) == (dtype is torch.float32) for one in chosen)
                if M == 1:
                    assert [one.kwargs["BLOCK_N"] for one in chosen] == [64]
