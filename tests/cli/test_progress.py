"""How far and how long: the estimate follows the pace, the bar never runs backwards, a log gets plain lines."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.report.progress import Display, Estimate, Pace
from groundspeed.report.style import Style

STYLE = Style(colour=False, width=80)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(stream):
    return [line.replace("\x1b[K", "").rstrip() for line in stream.getvalue().split("\r") if line.strip("\x1b[K")]


def test_the_estimate_starts_with_what_is_expected_and_follows_the_pace():
    estimate = Estimate({"a": 100.0, "b": 100.0})
    assert estimate.left({"a": Pace(0.0, 0.0)}) == 200
    assert estimate.left({"a": Pace(30.0, 0.05)}) == 195, "start-up says nothing about the pace"
    assert estimate.left({"a": Pace(100.0, 0.5)}) == 300, "twice as slow as expected"
    estimate.spent["a"] = 50.0
    assert estimate.left({"b": Pace(0.0, 0.0)}) == 50, "twice as fast as expected"
    estimate.spent["b"] = 50.0
    assert estimate.left({}) == 0


def test_operators_side_by_side_share_what_is_left():
    estimate = Estimate({"a": 100.0, "b": 100.0, "c": 60.0, "d": 40.0}, lanes=2)
    assert estimate.left({}) == 150
    assert estimate.left({"a": Pace(50.0, 0.5), "b": Pace(50.0, 0.5)}) == 100
    assert estimate.left({"a": Pace(100.0, 0.5), "b": Pace(100.0, 0.5)}) == 200, "twice as slow as expected"
    assert estimate.share({"a": Pace(50.0, 0.5), "b": Pace(50.0, 0.5)}) == pytest.approx(1 / 3)
    estimate.spent["a"] = 100.0
    assert estimate.share({"b": Pace(50.0, 0.5)}) == pytest.approx(1 / 2)


@given(st.floats(0, 1), st.floats(0, 1e5), st.floats(0.1, 1e4), st.floats(0.1, 1e4))
def test_an_estimate_is_never_negative_or_endless(share, elapsed, first, second):
    assert 0 <= Estimate({"a": first, "b": second}).left({"a": Pace(elapsed, share)}) <= 10 * (first + second) * 1.001


def test_a_terminal_gets_one_line_that_fits_and_only_grows():
    stream, clock = Terminal(), Clock()
    display = Display(stream, STYLE, Estimate({"softmax": 10.0, "relu": 10.0}), clock)
    display.begin("softmax", "2 implementations")
    shares = []
    for share in (0.0, 0.25, 0.5, 0.4, 1.0):
        clock.now += 2.0
        display.update("softmax", "time", "torch_eager, case 1 of 4, " + "long " * 20, share)
        shares.append(int(re.search(r"(\d+) %", drawn(stream)[-1]).group(1)))
    assert shares == [0, 12, 25, 25, 50]
    assert "timing torch_eager" in drawn(stream)[-1]
    assert max(len(line) for line in drawn(stream)) <= 79
    assert "\n" not in stream.getvalue()
    display.end("softmax", "measured")
    assert stream.getvalue().endswith("softmax: measured in 10 s\n")


def test_a_terminal_shows_operators_side_by_side_in_one_line():
    stream, clock = Terminal(), Clock()
    style = Style(colour=False, width=100)
    display = Display(stream, style, Estimate({"softmax": 10.0, "relu": 10.0, "gelu": 20.0}, lanes=2), clock)
    display.begin("softmax", "2 implementations")
    display.begin("relu", "2 implementations")
    display.update("softmax", "prepare", "torch_eager, case 1 of 4", 0.5)
    clock.now += 1.0
    display.update("relu", "time", "case 2 of 4", 0.5)
    line = drawn(stream)[-1]
    assert line.startswith("2 operators") and "25 %" in line and len(line) <= 99
    assert "softmax preparing" in line and "relu timing" in line
    display.end("softmax", "measured on GPU 0")
    assert "softmax: measured on GPU 0 in 1 s\n" in stream.getvalue()
    clock.now += 1.0
    display.update("relu", "time", "case 3 of 4", 0.7)
    assert drawn(stream)[-1].rpartition("\n")[2].startswith("relu ")


def test_a_terminal_is_not_redrawn_for_every_event():
    stream, clock = Terminal(), Clock()
    display = Display(stream, STYLE, Estimate({"softmax": 10.0}), clock)
    for step in range(1000):
        clock.now += 0.001
        display.update("softmax", "time", "", step / 1000)
    assert 5 <= len(drawn(stream)) <= 12


def test_a_log_gets_a_line_when_an_operator_begins_and_ends():
    stream, clock = io.StringIO(), Clock()
    display = Display(stream, STYLE, Estimate({"softmax": 10.0, "relu": 30.0}), clock)
    display.begin("softmax", "2 implementations, 1 cases")
    display.update("softmax", "time", "", 0.5)
    clock.now = 10.0
    display.end("softmax", "measured")
    assert stream.getvalue() == ("softmax: 2 implementations, 1 cases\nsoftmax: measured in 10 s; about 30 s left\n")


@pytest.mark.parametrize("phase", ["prepare", "a phase of tomorrow"])
def test_any_phase_has_words(phase):
    stream = Terminal()
    Display(stream, STYLE, Estimate({"a": 1.0}), Clock()).update("a", phase, "", 0.0)
    assert {"prepare": "preparing"}.get(phase, phase) in drawn(stream)[-1]
