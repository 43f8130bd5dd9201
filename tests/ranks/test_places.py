"""An operator that is spread over GPUs is measured on all of them, alone, and filed under the machine that has them."""

from __future__ import annotations

import pytest

from groundspeed import machine, nvml
from groundspeed.commands import sweeping
from groundspeed.machine import machine_of
from groundspeed.measure import lane
from groundspeed.measure.claim import GpuBusy, Patience
from groundspeed.measure.lane import CPU, Place, hold, open_lane, places, spread, widest_place
from groundspeed.project import find_project
from groundspeed.selection import Selection
from groundspeed.session import open_run
from tests.paths import ROOT

TWO = tuple(nvml.Gpu("NVIDIA H200", 143771 << 20, f"GPU-{letter * 8}") for letter in "ba")


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (machine, lane):
        monkeypatch.setattr(module, "visible_gpus", lambda: TWO)


def opened(tmp_path, which=None):
    selection = Selection(("all_reduce", "relu"), tier="small")
    project = find_project(ROOT)
    return open_run(project.root, tmp_path, selection, device="cuda", machine=which)


def test_one_place_of_both_gpus_shows_both_to_its_workers():
    both = spread(places("all", TWO))
    assert both == widest_place("cuda") and both.label == "GPUs 0 and 1"
    assert both.variables == {lane.VISIBLE: f"{TWO[0].uuid},{TWO[1].uuid}"}
    assert spread(places("1", TWO)) == Place(TWO[1], "GPU 1")
    assert widest_place("cpu") is CPU and CPU.variables == {}


def test_all_gpus_are_held_and_none_may_be_in_use():
    both = widest_place("cuda")
    with open_lane(both, Patience(), nursery=False) as held:
        assert held.place.gpus == TWO
        for one in places("all", TWO):
            with pytest.raises(GpuBusy), hold(one, Patience()):
                pass
    with hold(Place(TWO[1], "GPU 1"), Patience()):
        with pytest.raises(GpuBusy), hold(both, Patience()):
            pass
        with hold(Place(TWO[0], "GPU 0"), Patience()):  # what was held of both is free again
            pass


def test_it_is_filed_under_the_machine_of_all_its_gpus(tmp_path):
    """A run of --gpus all files each operator under the kind of GPU, but those that are spread under all of them."""
    run = opened(tmp_path, "nvidia-h200")
    wide = sweeping._wide_place(run, places("all", TWO))
    assert wide.gpus == TWO and machine_of(wide.gpus) == "nvidia-h200-x2"
    assert sweeping._filed(run, "all_reduce", wide).machine == "nvidia-h200-x2"
    assert sweeping._filed(run, "relu", wide).machine == "nvidia-h200"


def test_a_run_that_names_no_gpu_has_all_and_one_that_names_one_has_that(tmp_path):
    first = places("0", TWO)
    assert sweeping._wide_place(opened(tmp_path), first).gpus == TWO
    assert sweeping._wide_place(opened(tmp_path, "nvidia-h200"), first) == first[0]


def test_spread_operators_wait_until_the_others_are_done(tmp_path, monkeypatch):
    seen = []

    def noted(places, names, *rest):
        seen.append((list(names), [place.label for place in places]))
        return []

    monkeypatch.setattr(sweeping, "_sweep_on", noted)
    run = opened(tmp_path, "nvidia-h200")
    plan = {"all_reduce": (), "relu": (), "softmax": ()}
    sweeping.sweep(run, plan, places("all", TWO), Patience(), "")
    assert [sorted(names) for names, _ in seen] == [["relu", "softmax"], ["all_reduce"]]
    assert [labels for _, labels in seen] == [["GPU 0", "GPU 1"], ["GPUs 0 and 1"]]
