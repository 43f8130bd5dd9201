"""QuACK's implementations leave out the inputs that QuACK 0.6.5 refused on an H200, and no others."""

from __future__ import annotations

import sys
from types import ModuleType
from unittest.mock import Mock

import pytest

from groundspeed.tree import Tree
from tests.architecture.sources import ROOT

HALVES = ("float16", "bfloat16")

# By operator: the rows of its check and bench shapes that were refused in 16 bits, and those in float32.
REFUSED = {
    "softmax": ({1, 257, 1009, 12345, 32769}, {1, 257, 1009, 12345, 32769}),
    "cross_entropy": ({1, 1001, 50257}, set()),
    "layer_norm": ({1, 4097}, set()),
    "rms_norm": ({1, 4097}, set()),
}


@pytest.fixture
def unsupported(request, monkeypatch):
    """``unsupported`` of an operator's implementation, loaded without QuACK, and the operator's spec."""
    for name in ("quack", "quack.softmax", "quack.cross_entropy", "quack.rmsnorm"):
        stub = ModuleType(name)
        stub.__getattr__ = Mock()  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, name, stub)
    tree = Tree(ROOT / "impls", package="impls_without_quack")
    return tree.load(f"{request.param}.quack_row").unsupported, tree.spec(request.param)


@pytest.mark.parametrize(("unsupported", "operator"), [(name, name) for name in REFUSED], indirect=["unsupported"])
def test_exactly_the_rows_that_it_refuses_are_skipped(unsupported, operator):
    reason, spec = unsupported
    in_halves, in_float32 = REFUSED[operator]
    for shape in (*spec.check_shapes, *spec.bench_shapes):
        length = shape.get("N", shape.get("V"))
        for dtype in HALVES:
            assert bool(reason(dtype, **shape)) == (length in in_halves), (dtype, shape)
        if shape.get("layout") != "large":
            assert bool(reason("float32", **shape)) == (length in in_float32), shape


@pytest.mark.parametrize("unsupported", ["softmax"], indirect=True)
def test_softmax_wants_whole_vectors_of_16_bytes(unsupported):
    reason, _ = unsupported
    assert [n for n in range(1, 17) if not reason("float32", M=2, N=n)] == [4, 8, 12, 16]
    assert [n for n in range(1, 17) if not reason("float16", M=2, N=n)] == [8, 16]
    assert reason("float16", M=0, N=7) is None  # no row, no copy
    assert "multiple of 8 elements in bfloat16" in reason("bfloat16", M=2, N=12)


@pytest.mark.parametrize("unsupported", ["rms_norm", "layer_norm"], indirect=True)
def test_norms_want_copies_of_4_bytes(unsupported):
    reason, _ = unsupported
    assert [n for n in range(1, 7) if reason("bfloat16", M=2, N=n)] == [1, 3, 5]
    assert reason("bfloat16", M=0, N=3) is None and reason("float32", M=2, N=3) is None


@pytest.mark.parametrize("unsupported", ["cross_entropy"], indirect=True)
def test_large_logits_are_left_out_in_float32_alone(unsupported):
    reason, _ = unsupported
    assert "three digits" in reason("float32", M=6, V=2048, layout="large")
    assert reason("float16", M=6, V=2048, layout="large") is None
