"""A small calibration on a GPU: every way of timing that is installed gives a figure of a known call."""

from __future__ import annotations

import pytest

from groundspeed.calibrate.run import Request, Told, absent_peers, calibrate
from groundspeed.calibrate.summary import figures
from tests.cli.toy_project import ROOT

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def calibrated():
    from groundspeed.calibrate.probes import named

    probes = named("cuda", ("relu_64KiB", "relu_64MiB", "matmul_2048"))
    return calibrate(Request(ROOT, "here", "cuda", probes, processes=2, beside=1), Told())


def test_our_own_timers_all_give_figures(calibrated):
    known = figures(calibrated)
    assert calibrated.timer == "cupti"
    for probe in ("relu_64KiB", "relu_64MiB", "matmul_2048"):
        for method in ("cupti", "cupti_hot", "cupti_memset", "events", "events_hot", "graph"):
            assert known[probe, method].value > 300, (probe, method, calibrated.missing)
        assert known[probe, "cupti"].processes == 2 and known[probe, "events"].processes == 1


def test_what_is_installed_gives_figures_too(calibrated):
    known = figures(calibrated)
    absent = absent_peers("cuda")
    for method in ("nvbench", "do_bench", "torch_benchmark"):
        if method not in absent:
            assert known["relu_64MiB", method].value > 0.8 * known["relu_64MiB", "cupti"].value, calibrated.missing
    if ("relu_64MiB", "ncu") not in known:
        assert any(one.method == "ncu" and one.reason for one in calibrated.missing)


def test_a_memset_flush_costs_a_memory_bound_call_something(calibrated):
    known = figures(calibrated)
    assert known["relu_64MiB", "cupti_memset"].value > known["relu_64MiB", "cupti"].value


def test_costs_and_ceilings_are_there(calibrated):
    costs = {one.name: one.value_ns for one in calibrated.costs}
    assert costs.keys() >= {"empty_kernel", "hand_over", "launch", "launch_and_wait", "event_pair"}
    assert 200 < costs["empty_kernel"] < 20_000 and costs["launch"] < costs["launch_and_wait"]
    (ceilings,) = calibrated.ceilings
    assert min(ceilings.copy, ceilings.read, ceilings.write) > 1e11 and ceilings.matmul["bfloat16"] > 1e12


def test_both_sides_of_the_same_code_read_the_same(calibrated):
    assert all(abs(one.log_ratio) < 0.05 for one in calibrated.ratios if one.probe == "relu_64MiB")
