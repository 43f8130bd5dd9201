"""Numbers as a reader sees them: three significant digits, the unit chosen by size."""

from __future__ import annotations

import math

ABSENT = "–"
_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def known(value: float | None) -> bool:
    """Whether a value is a finite number."""
    return value is not None and math.isfinite(value)


def significant(value: float, digits: int = 3) -> str:
    """``digits`` significant digits without an exponent between 0.001 and 10⁶; trailing zeros stay (1.50, not 1.5)."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 10 ** max(digits, 6) or size < 1e-3:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    rounded = float(f"{value:.{digits - 1}e}")
    return f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


def time(ns: float | None) -> str:
    """Nanoseconds as ns, µs, ms or s."""
    return _scaled(ns, _TIME)


def size(count: float | None) -> str:
    """Bytes as B, KiB, MiB …: powers of 1024."""
    if count is not None and known(count) and abs(count) < 1024:
        return f"{count:.0f} B"
    return _scaled(count, _BINARY)


def rate(value: float | None, unit: str) -> str:
    """Something a second (bytes, FLOP, images), with a decimal prefix: 4.31 TB/s."""
    if value is None or not known(value):
        return ABSENT
    factor, prefix = _step(value, _DECIMAL)
    return f"{significant(value / factor)} {prefix}{unit}"


def times(ratio: float | None) -> str:
    """A ratio: 2.31×."""
    return f"{significant(ratio)}×" if ratio is not None and known(ratio) else ABSENT


def percent(fraction: float | None, signed: bool = False) -> str:
    """A fraction as per cent, one decimal below 100 %."""
    if fraction is None or not known(fraction):
        return ABSENT
    value = fraction * 100
    digits = 0 if abs(value) >= 99.95 else 1
    return f"{value:{'+' if signed else ''}.{digits}f} %"


def _scaled(value: float | None, steps: tuple[tuple[float, str], ...]) -> str:
    if value is None or not known(value):
        return ABSENT
    factor, unit = _step(value, steps)
    return f"{significant(value / factor)} {unit}"


def _step(value: float, steps: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    # 999.6 reads "1,000 ns" when rounded to three digits: the step is chosen for the rounded value
    rounded = abs(float(f"{value:.2e}"))
    for factor, unit in steps:
        if rounded >= factor:
            return factor, unit
    return steps[-1]
