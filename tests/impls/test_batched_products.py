"""impls/_cupy/batched.py against numpy.matmul, with a model of cuBLAS that takes its arguments by the documentation."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from groundspeed.tree import Tree
from tests.impls import host_cupy
from tests.paths import ROOT

SIZES = [(1, 1, 1), (1, 5, 3), (5, 1, 3), (5, 3, 1), (17, 33, 8), (16, 24, 32), (7, 64, 65)]  # M, N, K
LEADING = [(), (1,), (3,), (2, 3), (1, 4), (4, 1), (2, 1, 3)]


@pytest.fixture
def cupy(tmp_path, monkeypatch):
    stand_in = host_cupy.make(host_cupy.Compiler(tmp_path))
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return stand_in


@pytest.fixture
def batched(cupy) -> ModuleType:
    tree = Tree(ROOT / "impls", package="impls_of_batches")
    yield tree.load("_cupy.batched")
    for name in [name for name in sys.modules if name.partition(".")[0] == tree.package]:
        del sys.modules[name]


def drawn(shape: tuple[int, ...], dtype: str = "float32", pitch: int = 0, gap: int = 0, seed: int = 0) -> Any:
    """Normal numbers, ``pitch`` elements more from row to row and ``gap`` more rows from matrix to matrix."""
    *leading, rows, columns = shape
    wide = host_cupy.empty((*leading, rows + gap, columns + pitch), dtype)
    array = wide[..., :rows, :columns]
    array[...] = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return array


def transposed(array: Any, turned: bool) -> np.ndarray:
    wide = np.asarray(array, dtype=np.float64)
    return wide.swapaxes(-1, -2) if turned else wide


def assert_product(out: Any, a: Any, b: Any, ta: bool, tb: bool, alpha: float = 1.0) -> None:
    expected = (alpha * (transposed(a, ta) @ transposed(b, tb))).astype(out.dtype)
    np.testing.assert_allclose(out, expected, rtol=2e-3 if out.dtype == np.float16 else 1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("ta, tb", [*itertools.product([False, True], repeat=2)])
def test_products_of_all_pitches_and_transposes(batched, cupy, dtype, leading, ta, tb):
    for (m, n, k), pitches in itertools.product(SIZES, [(0, 0, 0), (3, 0, 0), (0, 5, 1), (2, 1, 7)]):
        a = drawn((*leading, *((k, m) if ta else (m, k))), dtype, pitches[0], seed=1)
        b = drawn((*leading, *((n, k) if tb else (k, n))), dtype, pitches[1], seed=2)
        out = drawn((*leading, m, n), dtype, pitches[2])
        before = cupy.cuda.cublas.calls
        assert batched.batched_product(a, b, out, ta, tb, alpha=0.25) is out
        assert cupy.cuda.cublas.calls == before + 1
        assert_product(out, a, b, ta, tb, 0.25)
        fresh = batched.batched_product(a, b, transpose_a=ta, transpose_b=tb)
        assert fresh.dtype == dtype and fresh.flags.c_contiguous
        assert_product(fresh, a, b, ta, tb)


def test_only_what_belongs_to_the_product_is_written(batched):
    whole = host_cupy.empty((2, 3, 5, 8), "float32")
    whole[...] = 7
    a, b = drawn((2, 3, 4, 6)), drawn((2, 3, 6, 5))
    batched.batched_product(a, b, whole[..., :4, :5][:, ::1])  # matrices 5 rows apart, rows 8 elements
    assert (whole[..., 4:, :] == 7).all() and (whole[..., 5:] == 7).all()
    assert_product(whole[..., :4, :5], a, b, False, False)


def test_matrices_may_lie_between_each_others_rows_and_a_factor_may_be_one_for_all(batched, cupy):
    """As resnet_bottleneck/cupy_im2col has it."""
    filters = cupy.broadcast_to(drawn((5, 7)), (3, 5, 7))
    images, product = drawn((3, 7, 6)), host_cupy.empty((5, 3, 6), "float32")
    batched.batched_product(filters, images, product.swapaxes(0, 1))
    assert cupy.cuda.cublas.calls == 1
    assert_product(product.swapaxes(0, 1), filters, images, False, False)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[..., ::2],  # a gap between neighbours
        lambda x: x.swapaxes(0, 1),  # two leading dimensions that are not one walk
        lambda x: x.swapaxes(-1, -2),
        lambda x: x[..., ::-1, :],
        lambda x: x[::-1],
        lambda x: np.broadcast_to(x[..., :1, :], x.shape, subok=True),
    ],
)
def test_what_cublas_cannot_walk_is_copied_and_right(batched, view):
    a = view(drawn((4, 4, 6, 6)))
    assert not batched.walk(a)
    b = drawn((*a.shape[:-2], a.shape[-1], 3))
    assert_product(batched.batched_product(a, b), a, b, False, False)
    c = drawn((*a.shape[:-2], 3, a.shape[-2]))
    assert_product(batched.batched_product(c, a), c, a, False, False)


def test_the_steps_of_a_dimension_of_one_element_do_not_matter(batched):
    strange = np.lib.stride_tricks.as_strided(drawn((3, 1, 4)), (3, 1, 4), (16, 12344, 4)).view(host_cupy.Array)
    assert batched.walk(strange) == (4, 4)
    assert batched.walk(np.lib.stride_tricks.as_strided(drawn((3, 4)), (1, 3, 4), (-80, 16, 4))) == (12, 4)


@pytest.mark.parametrize("m, n, k, leading", [(0, 3, 4, (2,)), (3, 0, 4, (2,)), (3, 4, 5, (0,)), (3, 4, 5, (2, 0))])
def test_a_product_without_elements_asks_nobody(batched, cupy, m, n, k, leading):
    out = batched.batched_product(drawn((*leading, m, k)), drawn((*leading, k, n)))
    assert out.shape == (*leading, m, n) and cupy.cuda.cublas.calls == 0


def test_a_sum_of_nothing_is_zero(batched, cupy):
    out = batched.batched_product(drawn((2, 3, 0)), drawn((2, 0, 4)))
    assert out.shape == (2, 3, 4) and not out.any() and cupy.cuda.cublas.calls == 0


def test_the_handle_is_left_as_it_was_even_by_an_error(batched, cupy, monkeypatch):
    cublas = cupy.cuda.cublas
    a, b = drawn((2, 3, 4)), drawn((2, 4, 5))
    batched.batched_product(a, b)
    assert (cublas.pointers, cublas.arithmetic) == (host_cupy.POINTER_DEVICE, host_cupy.TF32_MATH)

    def refuse(*arguments):
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")

    monkeypatch.setattr(cublas, "gemmStridedBatchedEx", refuse)
    with pytest.raises(RuntimeError, match="NOT_SUPPORTED"):
        batched.batched_product(a, b)
    assert (cublas.pointers, cublas.arithmetic) == (host_cupy.POINTER_DEVICE, host_cupy.TF32_MATH)


def test_what_is_no_product_is_refused(batched):
    a, b = drawn((2, 3, 4)), drawn((2, 4, 5))
    with pytest.raises(ValueError, match="no product"):
        batched.batched_product(a, b, transpose_b=True)
    with pytest.raises(ValueError, match="no product"):
        batched.batched_product(a[:1], b)
    with pytest.raises(ValueError, match="is no float32"):
        batched.batched_product(a, b, host_cupy.empty((2, 3, 4)))
    with pytest.raises(ValueError, match="is no float16"):
        batched.batched_product(a, b, host_cupy.empty((2, 3, 5), "float16"))
    with pytest.raises(ValueError, match="cannot write"):
        batched.batched_product(a, b, host_cupy.empty((2, 5, 3)).swapaxes(1, 2))
