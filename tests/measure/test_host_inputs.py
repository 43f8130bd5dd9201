"""Inputs that lie in the host's memory: where they are laid, what the oracle and the back ends get of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundspeed.backends.cupy_backend import _to_cupy
from groundspeed.measure import inputs
from groundspeed.measure.referee import fences
from groundspeed.operator import Role, case, data, host_data
from groundspeed.sanitizer.child import copied
from groundspeed.tree import Tree
from tests.referee.court import IMPLS, judged, measured, timing_bench, verdict

CASES = [
    case("float32", N=1),
    case("float32", N=5000, layout="strided"),
    case("float16", N=5000, layout="offset"),
    case("bfloat16", N=530001),
]
PIPELINE = '''"""A copy and a ReLU on a stream of its own."""

import torch


def prepare(x):
    lane = torch.cuda.Stream()

    def run():
        y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        lane.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(lane):
            y.copy_(x, non_blocking=True).relu_()
        torch.cuda.current_stream().wait_stream(lane)
        return y

    return run
'''


def made(device, one):
    return inputs.make_inputs("streamed_relu", IMPLS.spec("streamed_relu"), one, device, 0)


def test_it_is_data_and_marked():
    tensor = torch.zeros(3)
    assert (host_data(tensor).role, host_data(tensor).host, data(tensor).host) == (Role.DATA, True, False)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.label)
def test_on_a_cpu_it_is_fenced_and_laid_out_like_any_other(one):
    held = made("cpu", one)["x"]
    assert held.host and held.tensor.device.type == "cpu"
    strided, offset = (one.dims.get("layout") == name for name in ("strided", "offset"))
    assert held.tensor.stride() == ((2,) if strided else (1,))
    assert (held.tensor.data_ptr() % 16 != 0) == offset
    held.tensor.untyped_storage()[fences.GUARD - 1] = 0  # within the fence: the data begin at GUARD or a little later
    assert fences.broken(held.tensor) == "before"
    fences.mend(held.tensor)
    (expected,) = inputs.reference(IMPLS.spec("streamed_relu"), {"x": held}, "cpu")
    assert expected.dtype == torch.float64 and torch.equal(expected, held.tensor.double().relu())


def test_cupy_gets_a_numpy_array_over_the_same_memory():
    pytest.importorskip("cupy")
    tensor = torch.zeros(4)
    array = _to_cupy(tensor)
    tensor[1] = 7
    assert type(array) is np.ndarray and array[1] == 7


@pytest.mark.parametrize("layout", ["contiguous", "strided", "offset"])
def test_the_sanitizers_copy_stays_with_the_host(layout):
    original = made("cpu", case("float32", N=5000, layout=layout))["x"].tensor
    copy = copied(original, "cpu", host=True)
    assert torch.equal(copy, original) and copy.stride() == original.stride()
    assert copy.untyped_storage().data_ptr() != original.untyped_storage().data_ptr()


@pytest.mark.gpu
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.label)
def test_on_a_gpu_it_is_page_locked_between_fences_and_the_oracle_answers_on_the_device(one):
    held = made("cuda", one)["x"]
    assert held.tensor.device.type == "cpu" and held.tensor.is_pinned()
    assert fences.broken(held.tensor) == ""
    assert held.tensor.stride() == ((2,) if one.dims.get("layout") == "strided" else (1,))
    assert (held.tensor.data_ptr() % 16 != 0) == (one.dims.get("layout") == "offset")
    (expected,) = inputs.reference(IMPLS.spec("streamed_relu"), {"x": held}, "cuda")
    assert expected.device.type == "cuda" and torch.equal(expected.cpu(), held.tensor.double().relu())
    copy = copied(held.tensor, "cuda", host=True)
    assert copy.is_pinned() and copy.stride() == held.tensor.stride() and torch.equal(copy, held.tensor)


@pytest.mark.gpu
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.label)
def test_pipelines_that_join_their_streams_are_never_accused(one):
    names = tuple(i.name for i in IMPLS.implementations("streamed_relu") if i.backend in ("torch", "triton"))
    assert not judged(IMPLS, "streamed_relu", names, one, device="cuda").faults


BEFORE, BEHIND = "lane.wait_stream(torch.cuda.current_stream())", "torch.cuda.current_stream().wait_stream(lane)"


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("left_out", "size", "said"),
    [
        ("", 5000, [""]),
        ("", 16777216, [""]),
        (BEFORE, 5000, ["finite"]),
        (BEFORE, 16777216, ["finite", "late"]),
        (BEHIND, 16777216, ["late", "finite"]),
    ],
)
def test_a_pipeline_that_leaves_out_a_wait_is_caught(tmp_path, left_out, size, said):
    assert BEFORE in PIPELINE and BEHIND in PIPELINE
    (tmp_path / "streamed_relu").mkdir()
    text = PIPELINE.replace(left_out, "pass") if left_out else PIPELINE
    (tmp_path / "streamed_relu" / "torch_lane.py").write_text(text)
    tree = Tree(tmp_path, specs=IMPLS)
    complaint = verdict(tree, "streamed_relu", "torch_lane", case("float32", N=size), device="cuda")
    assert complaint.partition(":")[0] in said, complaint


@pytest.mark.gpu
def test_the_span_of_a_pipeline_holds_its_copies():
    """64 MiB cross no link of today in less than 0.1 ms, which is 671 GB/s; the ReLU alone takes a third of that."""
    one = case("float32", N=16777216)
    rows = measured(IMPLS, "streamed_relu", ("torch_eager", "torch_streams"), one, timing_bench("cuda"))
    for row in rows:
        assert row.status == "ok", row.reason
        assert min(row.samples["device_cold"]) > 100_000 and min(row.samples["device_hot"]) > 100_000
        assert any("Memcpy HtoD" in kernel for kernel in row.kernels)
