"""Three significant digits, the unit chosen by size, nothing that reads 1000 of a smaller unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.report import units


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (1420, "1.42 µs"),
        (30_100, "30.1 µs"),
        (254_100, "254 µs"),
        (999_600, "1.00 ms"),
        (12.34, "12.3 ns"),
        (0.5, "0.500 ns"),
        (2.5e9, "2.50 s"),
        (0, "0 ns"),
    ],
)
def test_durations(nanoseconds, shown):
    assert units.duration(nanoseconds) == shown


@given(st.floats(1e-3, 1e15))
def test_a_duration_reads_back_within_its_three_digits(nanoseconds):
    number, unit = units.duration(nanoseconds).split()
    assert float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit] == pytest.approx(nanoseconds, rel=5.1e-3)
    assert unit == "s" or float(number) < 1000


@given(st.floats(1e-6, 1e6))
def test_significant_keeps_three_digits(value):
    assert float(units.significant(value)) == pytest.approx(value, rel=5.1e-3)
    assert "e" not in units.significant(value)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s"), (3720, "1 h 02 min")],
)
def test_waiting_times(seconds, shown):
    assert units.clock(seconds) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.943, "94 %"), (0.0996, "10 %"), (0.0949, "9.5 %"), (0.00996, "1.0 %"), (0.0021, "0.21 %")]
)
def test_percent(share, shown):
    assert units.percent(share) == shown


def test_sizes_and_rates():
    assert units.size(64 << 20) == "64 MiB"
    assert units.size(3 << 29) == "1.50 GiB"
    assert units.size(0) == "0 B"
    assert units.rate(4.31e12, "B/s") == "4.31 TB/s"
    assert units.rate(7.83e14, "FLOP/s") == "783 TFLOP/s"


@pytest.mark.parametrize("value", [1.7976931348623157e308, -1.7976931348623157e308, float("inf"), float("nan")])
def test_a_number_that_cannot_be_rounded_is_shown(value):
    assert float(units.significant(value)) == pytest.approx(value, rel=1e-5, nan_ok=True)
