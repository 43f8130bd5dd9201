from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.components.numbers import percent, quantity, significant, spread, times


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1.5e-6, "s", "1.50 µs"),
        (999.6e-9, "s", "1.00 µs"),  # not "1,000 ns"
        (999.4e-9, "s", "999 ns"),
        (0.0421, "seconds", "42.1 ms"),
        (73.0, "s", "73.0 s"),
        (0.0, "s", "0 ns"),
        (512, "B", "512 B"),
        (8 << 20, "B", "8.00 MiB"),
        (1 << 30, "B", "1.00 GiB"),
        ((1 << 30) - 1, "B", "1.00 GiB"),
        (4.31e12, "B/s", "4.31 TB/s"),
        (783e12, "FLOP/s", "783 TFLOP/s"),
        (51_234.0, "1/s", "51.2 k/s"),
        (2.3e-3, "J", "2.30 mJ"),
        (0.923, "1", "92.3 %"),
        (0.00048, "", "4.80e-4"),
        (12.0, "points", "12.0 points"),
        (None, "s", "–"),
        (math.nan, "s", "–"),
        (math.inf, "B/s", "–"),
    ],
)
def test_quantity(value: float | None, unit: str, shown: str) -> None:
    assert quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1.00"), (123.4, "123"), (1234.5, "1,230"), (0.01234, "0.0123"), (1e6, "1.00e6"), (0, "0")],
)
def test_three_significant_digits(value: float, shown: str) -> None:
    assert significant(value) == shown


@given(st.floats(1e-12, 1e12))
def test_what_is_shown_is_the_value_to_three_digits(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3)


@given(st.floats(1e-9, 1e3))
def test_a_time_reads_back_as_itself(value: float) -> None:
    number, unit = quantity(value, "s").split(" ")
    factor = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=5.1e-3)


def test_ratios_and_intervals() -> None:
    assert times(2.306) == "2.31×"
    assert times(None) == "–"
    assert percent(0.051, signed=True) == "+5.1 %"
    assert percent(-1.5, signed=True) == "-150 %"
    assert percent(0.0004) == "0.04 %"
    assert spread(10.0, 9.9, 10.1) == "±1.0 %"
    assert spread(10.0, None, 10.1) == ""
