"""many_small and streamed_relu: what their oracles tell apart, and how a vector is cut for the pipeline."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted, reference, tensors

SPEC = TREE.spec("many_small")
WHOLE = {"N": 1000, "folds": 16}


def chain(x, b):
    for point in b:
        x = (x - point.to(x.dtype)).abs() if x.dtype == torch.float64 else (x - float(point)).abs()
    return x


@pytest.mark.parametrize("dtype", SPEC.dtypes)
def test_a_chain_that_rounds_at_each_step_is_accepted_and_one_without_its_last_fold_is_not(dtype):
    case = Case.of(dtype, WHOLE)
    held = tensors(SPEC, case)
    expected = reference(SPEC, held)
    assert accepted(SPEC, case, chain(held["x"], held["b"]), expected)
    assert accepted(SPEC, case, expected.to(held["x"].dtype), expected)
    assert not accepted(SPEC, case, chain(held["x"], held["b"][:-1]), expected)
    assert not accepted(SPEC, case, chain(held["x"], held["b"].flip(0)), expected)
    assert not accepted(SPEC, case, torch.zeros_like(held["x"]), expected)


def test_folds_fold_the_line_and_stretch_nothing():
    """The slope stays 1 or -1, so an input that moves a little moves the output as much."""
    held = tensors(SPEC, Case.of("float32", WHOLE))
    x, step = held["x"].double(), 1e-9
    slope = (reference(SPEC, {"x": x + step, "b": held["b"]}) - reference(SPEC, {"x": x, "b": held["b"]})) / step
    assert torch.allclose(slope.abs(), torch.ones_like(slope), atol=1e-5)
    assert (slope > 0).any() and (slope < 0).any()


@given(st.integers(0, 1 << 28), st.sampled_from([2, 4]))
def test_pieces_cover_the_vector_in_order(size, itemsize):
    module = TREE.load("streamed_relu.pieces")
    bounds = module.pieces(size, itemsize)
    assert [first for first, _ in bounds] == [0, *(end for _, end in bounds)][: len(bounds)]
    assert (bounds[-1][1] if bounds else 0) == size
    assert len(bounds) <= module.MOST_PIECES
    assert all(end > first and first % module.ALIGNMENT == 0 for first, end in bounds)
    assert all((end - first) * itemsize >= module.LEAST_BYTES for first, end in bounds[:-1])


def test_check_cases_have_vectors_of_several_pieces():
    spec, module = TREE.spec("streamed_relu"), TREE.load("streamed_relu.pieces")
    sizes = {dtype: 4 if dtype == "float32" else 2 for dtype in spec.dtypes}
    for dtype, itemsize in sizes.items():
        counts = {len(module.pieces(case.dims["N"], itemsize)) for case in spec.check_cases if case.dtype == dtype}
        assert {1} < counts, dtype


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_relu_that_drops_nan_is_caught(dtype):
    spec, case = TREE.spec("streamed_relu"), Case.of(dtype, {"N": 5000, "values": "special"})
    held = tensors(spec, case)
    expected = reference(spec, held)
    assert accepted(spec, case, held["x"].relu(), expected)
    assert not accepted(spec, case, torch.fmax(held["x"], torch.zeros((), dtype=held["x"].dtype)), expected)
