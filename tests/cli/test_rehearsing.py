"""A run on a GPU says that it compiles beforehand, and hands what was tuned to the workers that measure."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from groundspeed import asv_sweep
from groundspeed.commands import sweeping
from groundspeed.measure.lane import CPU, Lane, Place
from groundspeed.nvml import Gpu
from groundspeed.rehearsal import Part, Rehearsed

ALL = Rehearsed(12, 0)
GPU = Place(Gpu("NVIDIA H200", 1, "GPU-1"), "GPU 0")
PARTS = [Part(None, name, (None,) * 2, (None,) * 3, compiled=True, notes={}) for name in ("matmul", "softmax")]


class Engine:
    """In place of the module: says what it was asked."""

    def __init__(self, parts, done=ALL):
        self.parts, self.done = parts, done
        self.asked = []
        self.device_of = lambda place: place.gpu.name if place.gpu else "cpu"

    def parts_of(self, runs, device):
        self.asked.append((tuple(runs), device))
        return self.parts

    def is_worth_it(self, parts):
        return len(parts) > 1

    def seconds_of(self, parts, lanes):
        return 60.0

    def rehearse(self, parts, lanes, folder, tell):
        assert folder.is_dir()
        for number, part in enumerate(parts, 1):
            tell(part, number / len(parts))
        return self.done


@pytest.mark.parametrize(("done", "said"), [(Rehearsed(12, 0), "12 compiled"), (Rehearsed(10, 2), "2 failed and")])
def test_it_says_what_it_compiles_and_keeps_tunings_until_the_end(done, said, monkeypatch, capsys):
    engine = Engine(PARTS, done)
    monkeypatch.setattr(sweeping, "rehearsal", engine)
    with ExitStack() as held:
        folder = sweeping._rehearse({"matmul": None}, [Lane(GPU, None)], held)
        assert folder.is_dir()
    assert not folder.exists()
    assert engine.asked == [(("matmul",), "NVIDIA H200")]
    begun, half, whole, ended = capsys.readouterr().err.splitlines()
    assert begun == "rehearsal: 12 implementations and cases to compile and tune side by side, unmeasured"
    assert (half, whole) == ("rehearsal: 50 % compiled, matmul last", "rehearsal: 100 % compiled, softmax last")
    assert ended.startswith("rehearsal: ")
    assert said in ended


@pytest.mark.parametrize(("place", "parts"), [(GPU, PARTS[:1]), (CPU, PARTS)])
def test_one_part_and_a_cpu_have_no_rehearsal(place, parts, monkeypatch, capsys):
    monkeypatch.setattr(sweeping, "rehearsal", Engine(parts))
    with ExitStack() as held:
        assert sweeping._rehearse({"matmul": None}, [Lane(place, None)], held) is None
    assert capsys.readouterr().err == ""


def test_asv_measures_in_the_lane_that_rehearsed_with_what_it_tuned(monkeypatch, capsys):
    lane = Lane(GPU, None)
    monkeypatch.setattr(asv_sweep, "rehearsal", Engine(PARTS))
    monkeypatch.setattr(asv_sweep, "default_place", lambda device: GPU)
    monkeypatch.setattr(asv_sweep, "open_lane", lambda *of, **how: nullcontext(lane))
    with ExitStack() as held:
        found, folder = asv_sweep._rehearsed(SimpleNamespace(device="cuda"), "matmul", held)
        assert found is lane
        assert folder.is_dir()
    assert not folder.exists()
    assert "matmul: 100% compiled and tuned" in capsys.readouterr().out
