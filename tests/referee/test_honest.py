"""No honest implementation is ever accused."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.measure.referee import REFEREE, Sheet, fences, judge
from groundspeed.measure.referee import settings as torch_settings
from groundspeed.operator import Case, Tolerance, case
from tests.referee.court import GALLERY, IMPLS, judged, measured, one_thread, timing_bench, verdict

DOUBLES = ("torch_eager", "torch_view", "torch_jitter", "torch_late_cache", "torch_tidy", "torch_writer")


def cases(tree, operator):
    return [pytest.param(one, id=one.label) for one in tree.spec(operator).check_cases]


@pytest.mark.parametrize("one", cases(GALLERY, "double"))
def test_views_jitter_and_caches_that_fill_once(one: Case):
    assert not judged(GALLERY, "double", DOUBLES, one).faults


@pytest.mark.parametrize("one", cases(GALLERY, "largest"))
def test_two_outputs_in_a_tuple_a_list_or_with_names(one: Case):
    names = ("torch_eager", "torch_list") + (("torch_named",) if one.dims["M"] else ())
    assert not judged(GALLERY, "largest", names, one).faults


@pytest.mark.parametrize("operator", ["same", "loose", "negative", "frame", "swiglu", "matmul_gelu", "exponential"])
def test_the_baseline_of_each_gallery_operator(operator: str):
    for one in GALLERY.spec(operator).check_cases:
        assert verdict(GALLERY, operator, "torch_eager", one) == ""


def test_weights_may_be_packed_in_prepare():
    for one in GALLERY.spec("matmul_gelu").check_cases:
        assert verdict(GALLERY, "matmul_gelu", "torch_packed", one) == ""


@pytest.mark.parametrize("operator", ["relu", "softmax", "normalize_color", "matmul"])
def test_what_torch_eager_computes_of_a_real_operator(operator: str):
    """Also every other file written in plain PyTorch; torch.compile takes its time elsewhere."""
    spec = IMPLS.spec(operator)
    plain = [
        one.name
        for one in IMPLS.implementations(operator)
        if one.backend == "torch" and not one.name.startswith(("torch_compile", "torch_jit"))
    ]
    for one in spec.check_cases:
        if spec.flop_count(one) > 1e7 or spec.traffic(one).total > 1e6:
            continue  # what is left is every awkward shape; the large ones only take time
        found = {
            name: fault for name, fault in judged(IMPLS, operator, tuple(plain), one).faults.items() if fault.failure
        }
        assert not found, one.label


def test_a_timed_run_of_honest_ones():
    rows = measured(GALLERY, "double", DOUBLES, case("float32", N=1000), timing_bench())
    assert [(row.implementation, row.status, row.reason) for row in rows] == [(name, "ok", "") for name in DOUBLES]


def sheet_for(expected: torch.Tensor, x: torch.Tensor, tolerance: Tolerance) -> Sheet:
    spec = dataclasses.replace(GALLERY.spec("double"), tolerance={"float32": tolerance, "float16": tolerance})
    held = {"x": fences.fenced(x)}
    one = Case.of(str(x.dtype).removeprefix("torch."), {"N": x.numel()})
    return Sheet(held, {"x": x.clone()}, (expected,), spec, one, "cpu", torch_settings.current("cpu"))


SHAPES = st.lists(st.integers(0, 6), min_size=0, max_size=4)


@st.composite
def layouts(draw):
    """A tensor of any small shape with its dimensions in any order, perhaps every second element of a wider one."""
    shape = draw(SHAPES)
    order = draw(st.permutations(range(len(shape))))
    dtype = draw(st.sampled_from([torch.float32, torch.float16]))
    values = torch.randn([shape[i] for i in order], generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    tensor = values.to(dtype).permute([order.index(i) for i in range(len(shape))])
    if shape and draw(st.booleans()):
        wide = torch.zeros(*shape[:-1], 2 * shape[-1], dtype=dtype)
        view = wide[..., ::2]
        return view.copy_(tensor)
    return tensor


@settings(max_examples=50, deadline=None)
@given(x=layouts())
def test_any_layout_of_the_input(x: torch.Tensor):
    with one_thread():
        sheet = sheet_for(2 * x.double(), x, Tolerance(2e-3, 0.0))
        live = sheet.held["x"]
        for run in (lambda: live * 2, lambda: (live * 2).contiguous(), lambda: torch.add(live, live)):
            ruling = judge(run, lambda out: (out,), sheet)
            # An output laid out as a strided input is has gaps itself, and that alone may be said of it.
            complaint = ruling.complaint
            assert complaint is None or (complaint.check == "strides" and not run().is_contiguous()), str(complaint)


@settings(max_examples=50, deadline=None)
@given(x=layouts())
def test_fencing_keeps_values_shape_strides_and_alignment(x: torch.Tensor):
    fenced = fences.fenced(x)
    assert torch.equal(fenced, x) and fenced.dtype == x.dtype
    assert fenced.shape == x.shape and fenced.stride() == x.stride()
    assert x.numel() == 0 or (fenced.data_ptr() - x.data_ptr()) % 512 == 0
    assert fences.broken(fenced) == "" and (x.numel() == 0 or not fenced._is_view())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(-1e6, 1e6, width=32),
            st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-42, 3.4e38]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_any_values_rounded_once_are_right(values: list[float]):
    """NaN, infinities, subnormals and what overflows are right where the oracle has them."""
    with one_thread():
        x = torch.tensor(values, dtype=torch.float32)
        sheet = sheet_for(2 * x.double(), x, Tolerance(1e-6, 0.0))
        live = sheet.held["x"]
        ruling = judge(lambda: live * 2, lambda out: (out,), sheet, REFEREE)
        assert ruling.complaint is None, str(ruling.complaint)
