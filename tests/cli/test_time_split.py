"""Where the time of a run went: each phase's share, and the rehearsal once, whatever it went before."""

from __future__ import annotations

from groundspeed.records import Environment, Footer, Header, Measurement, Record
from groundspeed.report.ending import time_split
from groundspeed.report.style import Style

PLAIN = Style(colour=False, width=80)


def record(operator, rehearsal_s=0.0, **seconds):
    environment = Environment("cuda", "a GPU", "3.12", "linux")
    header = Header("run", operator, "a-gpu", "2026-01-01T00:00:00", environment, rehearsal_s=rehearsal_s)
    rows = (Measurement("torch_eager", "float32", {"N": 1}, "ok"),)
    return Record(header, rows, Footer(1, seconds))


def test_a_rehearsal_before_several_operators_counts_once():
    records = [record("add", 60.0, time=15.0, total=20.0), record("relu", 60.0, time=15.0, total=20.0)]
    said = " ".join(" ".join(time_split(records, PLAIN)).split())
    split = "compiling and tuning beforehand 60 %, timing 30 %, the rest 10 %"
    assert said.startswith(f"Time 1 min 40 s, 90 % of it timing or compiling: {split}")
    assert "20.0 s for each of 2 measurements" in said


def test_two_sittings_had_a_rehearsal_each():
    records = [record("add", 60.0, time=10.0, total=10.0), record("relu", 30.0, time=20.0, total=20.0)]
    assert "2 min" in time_split(records, PLAIN)[0]
    assert "beforehand 75 %" in " ".join(" ".join(time_split(records, PLAIN)).split())


def test_without_one_there_is_no_word_of_it():
    assert "beforehand" not in " ".join(time_split([record("add", time=1.0, total=1.0)], PLAIN))
