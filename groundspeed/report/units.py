"""Numbers as people read them: three significant digits, and the unit chosen by size."""

from __future__ import annotations

import math

_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_ENERGY = ((1e9, "J"), (1e6, "mJ"), (1e3, "µJ"), (1.0, "nJ"))
_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def significant(value: float, digits: int = 3) -> str:
    """``value`` to so many significant digits, never in exponent form: 0.01234 → 0.0123, 1234.5 → 1234.

    Numbers that nothing measures, from 1e300 on, are shown in it all the same: the largest cannot be rounded.
    """
    if value == 0 or not abs(value) < 1e300:
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - exponent)
    exponent = math.floor(math.log10(abs(rounded)))  # 9.996 rounds to 10.0, which has one decimal fewer
    return f"{rounded:.{max(0, digits - 1 - exponent)}f}"


def duration(nanoseconds: float) -> str:
    """A measured time: ``1.42 µs``, ``254 µs``, ``12.3 ms``."""
    return _scaled(nanoseconds, _TIME)


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 case``, ``4,000 cases``; ``plural`` is for nouns that take more than an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def energy(nanojoules: float) -> str:
    """``12.3 mJ``."""
    return _scaled(nanojoules, _ENERGY)


def clock(seconds: float) -> str:
    """A waiting time: ``9 s``, ``2 min 05 s``, ``1 h 02 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def rate(per_second: float, unit: str) -> str:
    """``rate(4.31e12, "B/s")`` → ``4.31 TB/s``."""
    return _scaled(per_second, tuple((size, prefix + unit) for size, prefix in _DECIMAL))


def size(count: int) -> str:
    """Bytes in binary units: ``64 MiB``, ``1.5 GiB``."""
    for unit, name in _BINARY:
        if count >= unit:
            shown = count / unit
            return f"{shown:.0f} {name}" if shown == round(shown) else f"{significant(shown)} {name}"
    return "0 B"


def percent(share: float) -> str:
    """``0.943`` → ``94 %``; below ten per cent with one decimal, below one with two."""
    value = share * 100
    decimals = 0 if abs(value) >= 9.95 else 1 if abs(value) >= 0.995 else 2
    return f"{value:.{decimals}f} %"


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    for index, (unit, name) in enumerate(units):
        if value >= unit or index == len(units) - 1:
            text = significant(value / unit)
            if index > 0 and float(text) * unit >= units[index - 1][0]:  # 999.9 µs reads 1.00 ms
                unit, name = units[index - 1]
                text = significant(value / unit)
            return f"{text} {name}"
    raise AssertionError("unreachable: the last unit takes every value")
