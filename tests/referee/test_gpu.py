"""The gallery on a GPU: streams, races, freed memory and borrowed kernels exist only there."""

from __future__ import annotations

import pytest
import torch

from groundspeed.measure import case as case_module
from groundspeed.measure import compiling
from groundspeed.measure.referee import REFEREE
from groundspeed.operator import Case, case
from tests.referee.cheaters import CHEATERS, GPU_CHEATERS, LARGE, Cheater, N
from tests.referee.court import GALLERY, IMPLS, judged, measured, timing_bench, verdict
from tests.referee.test_honest import DOUBLES, cases

pytestmark = pytest.mark.gpu
# Of the CPU alone: a thread, whose place streams take, and freed memory of the host.
ON_GPU = [cheater for cheater in CHEATERS if cheater.name not in ("torch_thread", "torch_reads_freed")]


@pytest.mark.parametrize("cheater", [*ON_GPU, *GPU_CHEATERS], ids=str)
def test_is_caught_for_what_it_does(cheater: Cheater):
    complaint = verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, REFEREE, "cuda")
    assert cheater.accepts(complaint), complaint


@pytest.mark.parametrize("cheater", GPU_CHEATERS, ids=str)
def test_passes_when_the_one_check_is_missing(cheater: Cheater):
    assert verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, cheater.blind, "cuda") == ""


@pytest.mark.parametrize("name", ["triton_borrowed", "triton_decoy"])
def test_a_borrowed_kernel_under_a_triton_name(name: str, monkeypatch):
    names = ("torch_eager", name, "triton_own")
    rows = {row.implementation: row for row in measured(GALLERY, "double", names, LARGE, timing_bench("cuda"))}
    assert rows[name].failure == "incorrect"
    assert rows[name].reason.startswith("own kernel: launches void at::native::")
    assert rows["torch_eager"].status == rows["triton_own"].status == "ok", rows
    monkeypatch.setattr(case_module, "foreign_kernel", lambda kernels, own: "")
    (unseen,) = measured(GALLERY, "double", (name,), LARGE, timing_bench("cuda"))
    assert unseen.status == "ok", "it passes when nobody asks whose kernels ran"


@pytest.mark.parametrize("name", ["torch_tires", "torch_knows_the_timer"])
def test_who_stops_working_is_judged_again(name: str):
    (row,) = measured(GALLERY, "double", (name,), N, timing_bench("cuda"))
    assert row.failure == "incorrect" and row.reason.startswith("right before it was timed, wrong since")


def test_a_variant_that_is_compiled_while_timed(monkeypatch):
    names = ("torch_eager", "triton_compiles_late", "triton_own")
    rows = {row.implementation: row for row in measured(GALLERY, "double", names, LARGE, timing_bench("cuda"))}
    late = rows["triton_compiles_late"]
    assert (late.failure, late.reason) == ("error", "Triton compiled inside the timed region")
    assert rows["torch_eager"].status == rows["triton_own"].status == "ok", rows
    monkeypatch.setattr(compiling, "since", lambda before, now: {})
    (unseen,) = measured(GALLERY, "double", ("triton_compiles_late",), LARGE, timing_bench("cuda"))
    assert unseen.status == "ok", "it passes when nobody counts"


@pytest.mark.parametrize("one", [*cases(GALLERY, "double"), LARGE], ids=lambda one: one.label)
def test_honest_ones_are_never_accused(one: Case):
    assert not judged(GALLERY, "double", (*DOUBLES, "triton_own"), one, device="cuda").faults


@pytest.mark.parametrize("operator", ["relu", "softmax", "normalize_color", "matmul"])
def test_no_implementation_of_a_real_operator_that_runs_here_is_accused(operator: str):
    names = tuple(one.name for one in IMPLS.implementations(operator) if one.backend in ("torch", "triton"))
    spec = IMPLS.spec(operator)
    for one in spec.check_cases[:8]:
        torch._dynamo.reset()
        found = judged(IMPLS, operator, names, one, device="cuda").faults
        assert not {name: fault for name, fault in found.items() if fault.failure}, one.label


def test_the_same_kernel_without_fast_math_is_honest():
    for one in GALLERY.spec("exponential").check_cases:
        assert verdict(GALLERY, "exponential", "cuda_accurate", one, device="cuda") == ""


def test_a_timed_run_of_honest_ones():
    rows = measured(GALLERY, "double", (*DOUBLES, "triton_own"), case("float32", N=65536), timing_bench("cuda"))
    assert [(row.status, row.reason) for row in rows] == [("ok", "")] * len(rows)
