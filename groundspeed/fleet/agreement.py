"""Whether the stations of a fleet can stand for each other: one driver and one torch for one kind of GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from groundspeed.fleet.work import About

_ALIKE = ("driver", "torch", "python")


def disagreements(stations: Sequence[About]) -> list[str]:
    """A line for each station that cannot measure, and for each that has another version than most of its machine."""
    lines = [f"{one.label}: {one.problem}" for one in stations if one.problem]
    for machine in sorted({one.machine for one in stations}):
        group = [one for one in stations if one.machine == machine and not one.problem]
        lines += _odd_ones(group)
    return lines


def odd_hosts(stations: Sequence[About]) -> list[str]:
    """The hosts that would have to stay out for the rest to agree."""
    found = {one.host for one in stations if one.problem}
    for machine in {one.machine for one in stations}:
        group = [one for one in stations if one.machine == machine and not one.problem]
        for name in _ALIKE:
            usual = _usual(getattr(one, name) for one in group)
            found |= {one.host for one in group if getattr(one, name) != usual}
    return sorted(found)


def differs(late: About, group: Iterable[About]) -> str:
    """Why a station that came late cannot join those of its machine, or empty."""
    if late.problem:
        return late.problem
    for name in _ALIKE:
        usual = _usual(getattr(one, name) for one in group)
        if usual is not None and getattr(late, name) != usual:
            return f"has {name} {_said(getattr(late, name))}, the others {_said(usual)}"
    return ""


def _odd_ones(group: Sequence[About]) -> list[str]:
    lines = []
    for name in _ALIKE:
        counts = Counter(getattr(one, name) for one in group)
        if len(counts) < 2:
            continue
        usual = _usual(getattr(one, name) for one in group)
        for one in group:
            mine = getattr(one, name)
            if mine != usual:
                others = f"{counts[usual]} of {len(group)} {one.machine}"
                lines.append(f"{one.label}: has {name} {_said(mine)}, {others} have {_said(usual)}")
    return lines


def _usual(values: Iterable[str]) -> str | None:
    """The commonest; of equally common ones the greatest, so that the answer is the same for everybody."""
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value), default=None)


def _said(version: str | None) -> str:
    return version or "none"
