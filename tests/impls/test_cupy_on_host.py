"""CuPy implementations with products between their kernels, on the CPU: kernels by g++, cuBLAS by its documentation.

What CuPy and a GPU add to that, nothing here knows: compiling for the device, real cuBLAS, streams.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

import numpy as np
import pytest
import torch

from groundspeed.measure.referee.answer import wrong
from groundspeed.measure.referee.errors import Errors
from groundspeed.operator import Case
from groundspeed.tree import Tree
from tests.impls import host_cupy
from tests.impls.judge import reference, tensors
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="compiles kernels for the CPU: no g++ here")

IMPLEMENTATIONS = (
    "attention/cupy_matmul",
    "attention_backward/cupy_matmul",
    "transformer_layer/cupy_matmul",
    "conv_bn_relu_add/cupy_im2col",
    "resnet_bottleneck/cupy_im2col",
    "matmul_gelu/cupy_matmul",
)
LAYER = {"B": 2, "S": 24, "D": 128, "H": 2, "F": 64}
PLANES = [(1, 1), (7, 5), (6, 6), (8, 16), (3, 300), (14, 14), (28, 28), (4, 2), (16, 1), (1, 16), (5, 8)]
MORE = {  # what the check shapes lack: whole packs in every dimension, rows that a whole block holds, or none
    "attention": [
        {"B": 2, "H": 1, "S": 64, "D": 64, "causal": 1},
        {"B": 1, "H": 1, "S": 1030, "D": 8, "causal": 1},
        {"B": 1, "H": 1, "S": 1088, "D": 8, "causal": 0},
    ],
    "attention_backward": [{"B": 2, "H": 1, "S": 64, "D": 64, "causal": 1}],
    "transformer_layer": [LAYER, {**LAYER, "D": 24}, {**LAYER, "layout": "strided"}],
    "conv_bn_relu_add": [{"N": 2, "C": 2, "O": 3, "H": h, "W": w} for h, w in PLANES],
    "resnet_bottleneck": [{"N": 2, "C": 2, "E": 5, "H": h, "W": w} for h, w in ((14, 14), (8, 8), (28, 4))],
    "matmul_gelu": [{"M": 3, "N": 2048, "K": 8}, {"M": 4, "N": 1032, "K": 8}],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree of its own, whose implementations see the stand-in for CuPy."""
    before = sys.modules.get("cupy")
    sys.modules["cupy"] = host_cupy.make(host_cupy.Compiler(tmp_path_factory.mktemp("kernels")))
    tree = Tree(ROOT / "impls", package="impls_on_host")
    yield tree
    if before is None:
        del sys.modules["cupy"]
    else:
        sys.modules["cupy"] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == tree.package]:
        del sys.modules[name]


def outputs(tree: Tree, name: str, inputs: dict[str, torch.Tensor]) -> tuple[np.ndarray, ...]:
    arrays = {key: host_cupy.placed(tensor.numpy()) for key, tensor in inputs.items()}
    kept = {key: array.copy() for key, array in arrays.items()}
    out = tree.load(name.replace("/", ".")).prepare(**arrays)()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, kept[key], err_msg=f"{key} was written")
    return out if isinstance(out, tuple) else (out,)


def assert_right(tree: Tree, name: str, case: Case) -> None:
    spec = tree.spec(name.partition("/")[0])
    inputs = tensors(spec, case)
    expected: Any = reference(spec, inputs)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    found = outputs(tree, name, inputs)
    assert [(out.dtype.name, out.shape) for out in found] == [(case.dtype, tuple(want.shape)) for want in wanted]
    outs = tuple(torch.from_numpy(np.array(out)) for out in found)
    tolerance = spec.tolerance[case.dtype]
    complaint = wrong(Errors.of(outs, wanted, tolerance), tolerance)
    assert complaint is None, f"{case.label}: {complaint}"


def cases(operator: str, dtype: str) -> list[Case]:
    spec = Tree(ROOT / "impls").spec(operator)
    checks = [case for case in spec.check_cases if case.dtype == dtype]
    return checks + [Case.of(dtype, dims) for dims in MORE[operator]]


CASES = [
    pytest.param(name, case, id=f"{name.partition('/')[0]} {case.label}")
    for name in IMPLEMENTATIONS
    for dtype in ("float16", "float32")
    if dtype in Tree(ROOT / "impls").spec(name.partition("/")[0]).dtypes
    for case in cases(name.partition("/")[0], dtype)
]


@pytest.mark.parametrize("name, case", CASES)
def test_an_implementation_is_right(tree, name, case):
    assert_right(tree, name, case)


@pytest.mark.parametrize("name, case", [one for one in CASES if "im2col" in one.values[0]])
def test_nothing_is_read_in_front_of_an_image(tree, monkeypatch, name, case):
    monkeypatch.setattr(host_cupy.Placement, "after", False)
    assert_right(tree, name, case)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_and_with_inputs_that_are_not_aligned(tree, monkeypatch, name):
    monkeypatch.setattr(host_cupy.Placement, "offset", 1)
    operator = name.partition("/")[0]
    for dims in (MORE[operator][0], MORE[operator][-1]):
        assert_right(tree, name, Case.of("float16", dims))


def softmax(scores: np.ndarray, causal: bool) -> np.ndarray:
    """In float64, over the keys that are seen."""
    seen = np.tri(scores.shape[-1], dtype=bool) if causal else np.ones(scores.shape, dtype=bool)
    wide = np.where(seen, scores.astype(np.float64), -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(wide - wide.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [1, 8, 100])
@pytest.mark.parametrize("way", [(0, 256), (1, 256), (8, 256), (4, 32)])
def test_every_way_through_a_row_of_scores_is_the_same_softmax(tree, monkeypatch, way, length, causal, dtype):
    scores = tree.load("_cupy.scores")
    if way[0] * way[1] * (16 // np.dtype(dtype).itemsize) < length and way[0]:
        pytest.skip("a row longer than that")
    monkeypatch.setattr(scores, "plan", lambda length, lanes: way)
    made = scores.empty_scores(2, 3, length, np.dtype(dtype))
    made[...] = 4 * np.random.default_rng(length).standard_normal(made.shape)
    hidden = ~np.tri(length, dtype=bool) & causal
    made[:, :, hidden] = np.nan
    if length > 64:  # what sums must live with, beside rows that are as they were
        made[0, 0, 60, :50] = -np.inf
        made[0, 1, 61, 3] = np.nan
        made[0, 2, 62, 60] = np.inf
        made[1, 0, 63, :] = -np.inf
        made[1, 1, 64, :] = 60000
    expected = softmax(made, causal)
    assert scores.softmax_in_place(length, np.dtype(dtype))(made, causal) is made
    wrong_row = np.isnan(expected).all(axis=-1, keepdims=True)  # whose products are NaN, whatever is hidden
    assert (np.where(wrong_row, 0, made)[:, :, hidden] == 0).all()
    made[:, :, hidden] = expected[:, :, hidden] = 0
    tolerance = {"rtol": 2e-3, "atol": 1e-7} if dtype == "float16" else {"rtol": 3e-6, "atol": 1e-30}
    np.testing.assert_allclose(made, expected, **tolerance)


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("length", [1, 8, 9, 256, 257, 1000, 1024, 1025, 4096, 8192, 8193, 16384, 16385, 1 << 20])
def test_every_pack_of_a_row_of_scores_has_a_thread(tree, length, lanes):
    scores = tree.load("_cupy.scores")
    packs, threads = scores.plan(length, lanes)
    assert threads in (32, 256) and (packs == 0) == (length > 2048 * lanes)
    assert packs == 0 or packs * threads * lanes >= length
    assert scores.pitch_of(length, 16 // lanes) % lanes == 0 <= scores.pitch_of(length, 16 // lanes) - length < lanes


@pytest.mark.parametrize("height, width", PLANES)
@pytest.mark.parametrize("itemsize", [2, 4])
def test_packs_of_pixels_stay_in_a_plane_and_loads_in_a_row(tree, height, width, itemsize):
    lanes, load = tree.load("_cupy.convolution").lanes_of(height, width, itemsize)
    assert height * width % lanes == 0 and lanes * itemsize <= 16
    assert width % load == 0 and lanes % load == 0


def test_the_activation_of_a_row_a_thread_is_that_of_several(tree):
    """tensor_parallel_mlp/cupy_nccl, which needs NCCL, has the first."""
    product, products = tree.load("matmul_gelu.cupy_matmul"), tree.load("_cupy.products")
    for rows, columns in ((3, 40), (4, 2056), (5, 7)):
        z, bias = host_cupy.empty((rows, columns), np.float16), host_cupy.empty((columns,), np.float16)
        z[...] = np.random.default_rng(rows).standard_normal(z.shape)
        bias[...] = np.linspace(-3, 3, columns)
        by_one = host_cupy.placed(z)
        products.row_packs(product.SOURCE, "bias_gelu", z.dtype)(rows, columns, (by_one, bias))
        np.testing.assert_array_equal(by_one, product.activation(z.dtype)(z, bias))
