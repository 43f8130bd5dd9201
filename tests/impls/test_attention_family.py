"""attention, attention_decode, rope and embedding: what their oracles and tolerances tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, tensors

OPERATORS = ("attention", "attention_decode", "rope", "embedding")
DTYPES = ("float32", "float16", "bfloat16")
CAUSAL = {"B": 1, "H": 2, "S": 257, "D": 64, "causal": 1}
FULL = {"B": 1, "H": 2, "S": 200, "D": 128, "causal": 0}
DECODE = {"B": 3, "H": 8, "G": 4, "S": 37, "D": 64, "fill": "ragged"}
ROPE = {"B": 2, "S": 7, "H": 6, "G": 3, "D": 64}


def expected_of(spec: Any, held: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    wide = {name: value.double() if value.is_floating_point() else value for name, value in held.items()}
    answer = spec.reference(**wide)
    return answer if isinstance(answer, tuple) else (answer,)


def judged(operator: str, dtype: str, dims: dict, function: Callable[..., Any]) -> bool:
    """Whether the tolerance covers what a function gives for inputs in a dtype."""
    spec, case = TREE.spec(operator), Case.of(dtype, dims)
    held = tensors(spec, case)
    answer = function(**held)
    outs = answer if isinstance(answer, tuple) else (answer,)
    pairs = zip(outs, expected_of(spec, held), strict=True)
    return all(accepted(spec, case, out.to(getattr(torch, dtype)), ref) for out, ref in pairs)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_exact_answer_is_accepted_and_one_with_an_element_gone_is_not(operator):
    spec = TREE.spec(operator)
    for case in spec.check_cases:
        for expected in expected_of(spec, tensors(spec, case)):
            rounded = expected.to(getattr(torch, case.dtype))
            assert accepted(spec, case, rounded, expected), case.label
            if expected.numel() < 2:
                continue
            gone = rounded.clone()
            gone.view(-1)[expected.abs().view(-1).argmax()] = 0
            assert not accepted(spec, case, gone, expected), case.label
            assert not accepted(spec, case, torch.zeros_like(rounded), expected), case.label


@pytest.mark.parametrize("operator", OPERATORS)
def test_checks_are_few_and_the_small_tier_is_small(operator):
    spec = TREE.spec(operator)
    assert len(spec.check_shapes) <= 8 and len(spec.bench_shapes) <= 5
    assert [spec.traffic(case).total < 16 << 20 for case in spec.tiers["small"]] == [True]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eager_is_within_the_tolerance_where_sums_are_longer_than_in_check_cases(operator, dtype):
    longer = {
        "attention": {"B": 1, "H": 1, "S": 1024, "D": 128, "causal": 0},
        "attention_decode": {"B": 2, "H": 8, "G": 2, "S": 2048, "D": 128, "fill": "ragged"},
        "rope": {"B": 1, "S": 512, "H": 8, "G": 1, "D": 64},
        "embedding": {"V": 500, "N": 300, "D": 96},
    }
    module = TREE.load(f"{operator}.torch_eager")
    assert judged(operator, dtype, longer[operator], lambda **held: module.prepare(**held)())


def formula(q, k, v, hidden, scale=None):
    """Attention in float64, with what is hidden and the scale as a fault would have them."""
    q, k, v = (x.double() for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def above(length: int, diagonal: int) -> torch.Tensor:
    return torch.ones((length, length), dtype=torch.bool).triu(diagonal)


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_masks_and_scales_that_are_off_are_caught(dtype):
    last = torch.zeros((200, 200), dtype=torch.bool)
    last[:, -1] = True
    assert judged("attention", dtype, CAUSAL, lambda q, k, v, causal: formula(q, k, v, above(257, 1)))
    assert not judged("attention", dtype, CAUSAL, lambda q, k, v, causal: formula(q, k, v, above(257, 2)))
    assert not judged("attention", dtype, CAUSAL, lambda q, k, v, causal: formula(q, k, v, above(257, 300)))
    assert not judged("attention", dtype, CAUSAL, lambda q, k, v, causal: formula(q, k, v, above(257, 1), 1 / 8.2))
    assert not judged("attention", dtype, FULL, lambda q, k, v, causal: formula(q, k, v, last))
    assert not judged("attention", dtype, FULL, lambda q, k, v, causal: formula(q, k, v, above(200, 1)))


def test_attention_by_tf32_products_is_refused():
    def cut(x):
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    assert not judged("attention", "float32", FULL, lambda q, k, v, causal: formula(cut(q), cut(k), v, above(200, 200)))


def test_causal_is_zero_or_one():
    module = TREE.load("attention.mask")
    assert module.is_causal(torch.tensor([1])) is True and module.is_causal(torch.tensor([0])) is False
    with pytest.raises(ValueError, match="expected causal"):
        module.is_causal(torch.tensor([2]))


def decoded(q, k, v, lengths, head_of):
    """Decoding in float64, with the lengths and the shared heads as a fault would have them."""
    out = torch.empty(q.shape, dtype=torch.float64)
    for batch, length in enumerate(lengths):
        for head in range(q.shape[1]):
            keys, values = (x[batch, head_of(head), :length].double() for x in (k, v))
            weights = torch.softmax(keys @ q[batch, head].double() / math.sqrt(q.shape[-1]), dim=0)
            out[batch, head] = weights @ values
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_decoding_beyond_the_length_short_of_it_or_with_another_head_is_caught(dtype):
    def with_lengths(change):
        return lambda q, k, v, lengths: decoded(q, k, v, [change(n) for n in lengths.tolist()], lambda h: h // 4)

    assert judged("attention_decode", dtype, DECODE, with_lengths(lambda n: n))
    assert not judged("attention_decode", dtype, DECODE, with_lengths(lambda n: min(n + 1, 37)))
    assert not judged("attention_decode", dtype, DECODE, with_lengths(lambda n: max(n - 1, 1)))
    assert not judged("attention_decode", dtype, DECODE, with_lengths(lambda n: 37))
    other = judged(
        "attention_decode", dtype, DECODE, lambda q, k, v, lengths: decoded(q, k, v, lengths, lambda h: h % 2)
    )
    assert not other


@given(st.integers(1, 200), st.integers(1, 5000), st.sampled_from(["full", "ragged", "one"]))
def test_lengths_lie_in_the_cache_and_the_bytes_count_them(batches, capacity, fill):
    spec, module = TREE.spec("attention_decode"), TREE.load("attention_decode.spec")
    lengths = module.lengths_of(batches, capacity, fill)
    assert len(lengths) == batches and all(1 <= n <= capacity for n in lengths)
    traffic = spec.bytes(2, B=batches, H=8, G=4, S=capacity, D=64, fill=fill)
    assert traffic.read == 2 * 2 * 64 * 2 * sum(lengths) + batches * 8 * 64 * 2 + 4 * batches
    assert spec.flops(B=batches, H=8, G=4, S=capacity, D=64, fill=fill) == 4 * 64 * 8 * sum(lengths)


def test_ragged_lengths_reach_the_capacity_in_a_mixed_order():
    module = TREE.load("attention_decode.spec")
    lengths = module.lengths_of(16, 8192, "ragged")
    assert max(lengths) == 8192 and min(lengths) == 512 and len(set(lengths)) == 16 and lengths != sorted(lengths)
    with pytest.raises(ValueError, match="unknown fill"):
        module.lengths_of(1, 1, "half")


@given(st.integers(1, 1 << 16), st.integers(1, 1 << 20))
def test_chunks_of_a_cache_are_neither_short_nor_many(pairs, capacity):
    module = TREE.load("attention_decode.chunks")
    chunk = module.chunk_length(pairs, capacity)
    assert chunk >= module.LEAST and chunk & (chunk - 1) == 0
    assert pairs * capacity <= chunk * module.PROGRAMS
    assert chunk == module.LEAST or pairs * capacity > chunk // 2 * module.PROGRAMS


@pytest.mark.parametrize("dtype", DTYPES)
def test_rope_by_another_convention_is_caught(dtype):
    def turned(x, cos, sin, interleaved=False, sign=1, shift=0):
        x = x.double()
        c, s = (t.double().roll(shift, 0)[:, None, :] for t in (cos, sin))
        first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
        halves = first * c - sign * second * s, second * c + sign * first * s
        return torch.stack(halves, -1).flatten(-2) if interleaved else torch.cat(halves, -1)

    def both(**fault):
        return lambda q, k, cos, sin: (turned(q, cos, sin, **fault), turned(k, cos, sin, **fault))

    assert judged("rope", dtype, ROPE, both())
    assert not judged("rope", dtype, ROPE, both(interleaved=True))
    assert not judged("rope", dtype, ROPE, both(sign=-1))
    assert not judged("rope", dtype, ROPE, both(shift=1))
    assert not judged("rope", dtype, ROPE, lambda q, k, cos, sin: (turned(q, cos, sin), k))


@pytest.mark.parametrize("dtype", DTYPES)
def test_embedding_of_the_neighbouring_row_is_caught(dtype):
    dims = {"V": 10, "N": 37, "D": 33}
    assert judged("embedding", dtype, dims, lambda table, ids: table[ids])
    assert not judged("embedding", dtype, dims, lambda table, ids: table[(ids + 1) % 10])
    assert not judged("embedding", dtype, dims, lambda table, ids: table[ids] * (1 + 2.0**-7))


@pytest.mark.parametrize(
    ("dtype", "size", "whole"), [("float32", 4, True), ("float16", 4, False), ("bfloat16", 0, True)]
)
def test_bulk_copies_move_rows_of_whole_packs_of_any_length(dtype, size, whole, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # whatever this machine's GPU has
    unsupported = TREE.load("embedding.cuda_bulk").unsupported
    for more in (0, 8, 8 * 1024 * 1024):
        reason = unsupported(dtype, V=5, N=3, D=more + size)
        assert reason is None if whole else "not whole packs of 16" in reason


def test_embedding_counts_the_rows_that_uniform_ids_name():
    different_rows = TREE.load("embedding.spec").different_rows
    for rows, count in ((1000, 500), (300, 3000), (5000, 40)):
        seen = [len(set(torch.randint(rows, (count,)).tolist())) for _ in range(40)]
        assert different_rows(rows, count) == pytest.approx(sum(seen) / len(seen), rel=0.02)
    assert different_rows(1, 3) == 1 and different_rows(1, 0) == 0 and different_rows(10, 0) == 0
