"""A run on a GPU says that it compiles beforehand, and hands what was tuned to the workers that measure."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from groundspeed import asv_sweep
from groundspeed.commands import rehearsing
from groundspeed.compiler_caches import tunings_of
from groundspeed.measure.lane import CPU, Lane, Place
from groundspeed.nvml import Gpu
from groundspeed.rehearsal.parts import Part
from groundspeed.rehearsal.performance import Rehearsed
from groundspeed.session import Preparation

GPU = Place(Gpu("NVIDIA H200", 1, "GPU-1"), "GPU 0")
PARTS = [Part(None, name, (None,) * 2, (None,) * 3, compiled=True, notes={}) for name in ("matmul", "softmax")]


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.fixture
def play(monkeypatch):
    """A rehearsal that goes as it is told, for either caller; returns what it was asked."""

    def set_up(done=Rehearsed(12), parts=PARTS, undisturbed=True):  # noqa: B008
        asked = []

        def rehearse(parts, lanes, tunings, tell):
            asked.append((len(parts), tunings))
            for number, part in enumerate(parts, 1):
                tell(part, number / len(parts))
            if isinstance(done, OSError):
                raise done
            return done

        performance = SimpleNamespace(rehearse=rehearse, seconds_of=lambda parts, lanes: 60.0, Rehearsed=Rehearsed)
        occasion = SimpleNamespace(worthwhile=lambda runs, place: parts, undisturbed=lambda lanes, say: undisturbed)
        for module in (rehearsing, asv_sweep):
            monkeypatch.setattr(module, "performance", performance)
            monkeypatch.setattr(module, "occasion", occasion)
        return asked

    return set_up


@pytest.mark.parametrize(("done", "said"), [(Rehearsed(12), "12 compiled"), (Rehearsed(10, 2), "2 failed and")])
def test_it_says_what_it_compiles_and_where_tunings_are_kept(done, said, play, capsys):
    asked = play(done)
    left = rehearsing.rehearse({"matmul": None}, [Lane(GPU, None)], pytest.fail)
    assert left.tunings == tunings_of("NVIDIA H200") and left.seconds > 0
    assert asked == [(2, tunings_of("NVIDIA H200"))]
    begun, half, whole, ended = capsys.readouterr().err.splitlines()
    assert begun == "rehearsal: 12 implementations and cases to compile and tune side by side, unmeasured"
    assert (half, whole) == ("rehearsal: 50 % compiled, matmul last", "rehearsal: 100 % compiled, softmax last")
    assert ended.startswith("rehearsal: ")
    assert said in ended


def test_a_log_says_how_long_candidates_were_timed(play, capsys):
    play(Rehearsed(12, timed_s=90.0, waited_s=600.0))
    rehearsing.rehearse({"matmul": None}, [Lane(GPU, None)], pytest.fail)
    *_, last = capsys.readouterr().err.splitlines()
    assert last == (
        "rehearsal: candidates were timed, one at a time on a GPU, for 1 min 30 s; "
        "workers waited 10 min 00 s for that, together"
    )


def test_why_a_part_could_not_be_is_said(play, capsys):
    play(Rehearsed(6, 6, ("matmul: OSError: No space left on device",)))
    rehearsing.rehearse({"matmul": None}, [Lane(GPU, None)], pytest.fail)
    assert "rehearsal: matmul: OSError: No space left on device" in capsys.readouterr().err


def test_without_a_folder_for_tunings_measuring_goes_on(play):
    play(OSError(28, "No space left on device", "/full"))
    said = []
    left = rehearsing.rehearse({"matmul": None}, [Lane(GPU, None)], said.append)
    assert left == Preparation(tunings_of("NVIDIA H200"))
    assert said == ["rehearsal: none, since /full cannot be written: No space left on device"]


@pytest.mark.parametrize(("parts", "undisturbed"), [([], True), (PARTS, False)])
def test_without_one_choices_are_still_kept(parts, undisturbed, play, capsys):
    asked = play(parts=parts, undisturbed=undisturbed)
    left = rehearsing.rehearse({"matmul": None}, [Lane(GPU, None)], pytest.fail)
    assert left == Preparation(tunings_of("NVIDIA H200"))
    assert asked == []
    assert capsys.readouterr().err == ""


def test_a_cpu_keeps_none(play):
    assert rehearsing.rehearse({"matmul": None}, [Lane(CPU, None)], pytest.fail) == Preparation()
    with ExitStack() as held:
        assert asv_sweep._rehearsed(SimpleNamespace(device="cpu"), "matmul", held) == (None, Preparation())


@pytest.mark.parametrize("done", [Rehearsed(12), Rehearsed(0, 12, ("no room",)), OSError(28, "No space", "/full")])
def test_asv_measures_in_the_lane_that_rehearsed_with_what_it_tuned(done, play, monkeypatch, capsys):
    lane = Lane(GPU, None)
    asked = play(done)
    monkeypatch.setattr(asv_sweep, "default_place", lambda device: GPU)
    monkeypatch.setattr(asv_sweep, "open_lane", lambda *of, **how: nullcontext(lane))
    with ExitStack() as held:
        took, left = asv_sweep._rehearsed(SimpleNamespace(device="cuda"), "matmul", held)
    assert took == lane and left.tunings == tunings_of("NVIDIA H200") and left.seconds > 0
    assert asked == [(2, tunings_of("NVIDIA H200"))]
    said = capsys.readouterr().out
    assert "matmul: 100% compiled and tuned" in said
    assert ("No space" in said or "no room" in said) is (done != Rehearsed(12))


def test_asv_opens_no_lane_for_what_needs_no_rehearsal(play, monkeypatch):
    play(parts=[])
    monkeypatch.setattr(asv_sweep, "default_place", lambda device: GPU)
    with ExitStack() as held:
        found = asv_sweep._rehearsed(SimpleNamespace(device="cuda"), "matmul", held)
    assert found == (None, Preparation(tunings_of("NVIDIA H200")))
