"""Numbers as a reader sees them: three significant digits, the prefix chosen by size. Values come in base units."""

from __future__ import annotations

import math

ABSENT = "–"
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_SECONDS = ("s", "seconds", "second")
_BYTES = ("B", "bytes", "byte")


def known(value: float | None) -> bool:
    """Whether a value is a finite number."""
    return value is not None and math.isfinite(value)


def significant(value: float, digits: int = 3) -> str:
    """``digits`` significant digits, without an exponent between 0.001 and 10⁶; trailing zeros stay (1.50, not 1.5)."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if not 1e-3 <= abs(rounded) < 1e6:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit: seconds, bytes, joules and rates scaled, anything else as it is.

    "" is a plain number; "1" is a fraction, shown as per cent.
    """
    if value is None or not known(value):
        return ABSENT
    if unit in _SECONDS or unit == "J":
        factor, prefix = _step(value, _SMALL)
        return f"{significant(value / factor)} {prefix}{'s' if unit in _SECONDS else 'J'}"
    if unit in _BYTES:
        factor, name = _step(value, _BINARY)
        return f"{value:.0f} B" if factor == 1 else f"{significant(value / factor)} {name}"
    if unit.endswith("/s"):
        factor, prefix = _step(value, _DECIMAL)
        return f"{significant(value / factor)} {prefix}{unit.removeprefix('1')}"
    if unit == "1":
        return percent(value)
    return f"{significant(value)} {unit}".rstrip()


def times(ratio: float | None) -> str:
    """A ratio: 2.31×."""
    return f"{significant(ratio)}×" if ratio is not None and known(ratio) else ABSENT


def percent(fraction: float | None, signed: bool = False) -> str:
    """A fraction as per cent: one decimal below 100 %."""
    if fraction is None or not known(fraction):
        return ABSENT
    value = fraction * 100
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 0.095 or value == 0 else 2
    return f"{value:{'+' if signed else ''}.{digits}f} %"


def spread(value: float | None, low: float | None, high: float | None) -> str:
    """Half the width of an interval relative to its middle: ±0.3 %; nothing without an interval."""
    if value is None or low is None or high is None or not (known(value) and known(low) and known(high)) or value == 0:
        return ""
    return f"±{percent((high - low) / 2 / abs(value))}"


def _step(value: float, steps: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    # the step is chosen for the rounded number: 999.6 ns would otherwise read "1,000 ns"
    for factor, name in steps:
        if float(f"{abs(value) / factor:.2e}") >= 1:
            return factor, name
    return steps[-1]
