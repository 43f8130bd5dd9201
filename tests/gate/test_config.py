"""The policy's parsing: what it accepts, and the one line that it says of what it does not."""

from __future__ import annotations

import datetime

import pytest

from groundspeed.errors import UserError
from groundspeed.gate.accepted import from_file, from_trailers
from groundspeed.gate.config import Config, parse_duration, read_config
from groundspeed.gate.git import Trailer
from groundspeed.gate.metrics import METRICS

COLD = METRICS["device_cold"]


def test_nothing_said_is_the_default():
    assert read_config("") == Config() == read_config("[project]\nname = 'x'")


def test_thresholds_and_overrides_apply_in_order():
    config = read_config("""
[tool.groundspeed.gate]
budget = "10m"
rounds = 40
[tool.groundspeed.gate.thresholds]
device_cold = 0.02
[[tool.groundspeed.gate.override]]
operator = "softmax"
threshold = 0.10
[[tool.groundspeed.gate.override]]
implementation = "triton_*"
metric = "device_*"
dtype = "float16"
threshold = 0.08
report_only = true
""")
    assert config.budget_seconds == 600 and config.rounds == 40
    assert config.limit("relu", "torch_eager", "float32", COLD, "cuda").thresholds == (0.02,)
    assert config.limit("softmax", "torch_eager", "float32", COLD, "cuda").thresholds == (0.10,)
    last = config.limit("softmax", "triton_row", "float16", COLD, "cuda")
    assert last.thresholds == (0.08,) and last.report_only
    assert not config.limit("softmax", "triton_row", "float16", METRICS["call"], "cuda").report_only


def test_a_cpu_starts_at_five_percent():
    assert Config().limit("relu", "torch_eager", "float32", COLD, "cuda").thresholds == (0.03, 0.05)
    assert Config().limit("relu", "torch_eager", "float32", COLD, "cpu").thresholds == (0.05,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roundz = 3", "unknown key 'roundz'; did you mean 'rounds'"),
        ("rounds = 3", "at least 8"),
        ("processes = 4", "at least 5"),
        ("rounds = true", "whole number"),
        ('budget = "soon"', "no duration"),
        ('tier = "huge"', "small, core or full"),
        ("fresh_processes = 5", "at least 6"),
        ('removed = "ignore"', "fail or report"),
        ('metrics = ["device_could"]', "did you mean 'device_cold'"),
        ("metrics = []", "nothing would be judged"),
        ('metrics = "device_cold"', "list of strings"),
        ("thresholds = 3", "table of metric"),
        ("[tool.groundspeed.gate.thresholds]\ndevice_cold = 3", "0.03 is 3 %"),
        ("[tool.groundspeed.gate.thresholds]\ndevice_cold = 0", "0.03 is 3 %"),
        ("[tool.groundspeed.gate.thresholds]\nspeed = 0.1", "unknown key 'speed'"),
        ('[[tool.groundspeed.gate.override]]\noperator = "x"', "neither a threshold"),
        ('[[tool.groundspeed.gate.override]]\nmetric = "nope"\nthreshold = 0.1', "no metric matches"),
        ("[[tool.groundspeed.gate.override]]\noperator = 3\nthreshold = 0.1", "a pattern in quotes"),
        ('override = "x"', r"\[\[tool.groundspeed.gate.override\]\]"),
        ("= =", "Invalid"),
    ],
)
def test_a_mistake_is_named(text, message):
    with pytest.raises(UserError, match=message):
        read_config(text if text.startswith(("[", "=")) else f"[tool.groundspeed.gate]\n{text}")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), (30, 30)])
def test_durations(text, seconds):
    assert parse_duration(text, "here") == seconds


def test_trailers_need_a_series_and_a_reason():
    accepted, remarks = from_trailers([Trailer("c" * 40, text) for text in ("a/b why not", "a/b", "a why", "a/* all")])
    assert [(entry.series, entry.reason) for entry in accepted] == [("a/b", "why not"), ("a/*", "all")]
    assert len(remarks) == 2 and all("ignored" in remark for remark in remarks)


def test_an_entry_of_the_allow_list_is_as_narrow_as_it_says():
    text = '[[accepted]]\nseries = "a/b"\nmetric = "call"\ndtype = "float16"\nuntil = 2030-01-01\nreason = "r"\n'
    (entry,), remarks = from_file(text, "file", datetime.date(2029, 12, 31))
    assert not remarks
    assert entry.covers("a", "b", "float16", "call")
    assert not entry.covers("a", "b", "float32", "call")
    assert not entry.covers("a", "b", "float16", "device_cold")
    assert not entry.covers("a", "b", "", "status")
    assert from_file(text, "file", datetime.date(2030, 1, 2))[0] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[accepted]]\nseries = "a/b"\nreason = "r"', "until is missing"),
        ('[[accepted]]\nseries = "a/b"\nuntil = "2030-01-01"\nreason = "r"', "no date"),
        ("[[accepted]]\nuntil = 2030-01-01\nreason = 'r'", "series is missing"),
        ("[[accepted]]\nseries = 'a/b'\nuntil = 2030-01-01\nreason = ' '", "reason is missing"),
        ("[[accepted]]\nseries = 'a/b'\nuntil = 2030-01-01\nreason = 'r'\nuntill = 3", "unknown untill"),
        ("[other]\nx = 1", "accepted"),
        ("x", "file"),
    ],
)
def test_an_allow_list_that_cannot_be_read_is_an_error(text, message):
    with pytest.raises(UserError, match=message):
        from_file(text, "file", datetime.date(2029, 1, 1))
