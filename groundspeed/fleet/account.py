"""What a fleet's time went to, for people: GPU-seconds by operator and by pull request, and what was moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from groundspeed.fleet.dispatch import Move
from groundspeed.fleet.ledger import REPEATED, Spent, totals
from groundspeed.report.style import Style, pad, width

_MOST_OPERATORS = 12


def account(lines: Sequence[Spent], moves: Sequence[Move], style: Style) -> list[str]:
    """The end of one run: the whole, the operators, the moves."""
    if not lines:
        return []
    found = [style.bold("Fleet"), *(f"  {line}" for line in _whole(lines))]
    operators = by_operator(lines)
    wide = max((width(name) for name in operators), default=0)
    ranked = sorted(operators.items(), key=lambda item: (-item[1], item[0]))
    found += [f"  {pad(name, wide)}  {_seconds(seconds)}" for name, seconds in ranked[:_MOST_OPERATORS]]
    rest = ranked[_MOST_OPERATORS:]
    if rest:
        found.append(f"  {len(rest)} others  {_seconds(sum(seconds for _, seconds in rest))}")
    return [*found, *(f"  {line}" for line in moved(moves))]


def costs(lines: Sequence[Spent], style: Style) -> list[str]:
    """All ledgers together: the whole, then by pull request, then by operator."""
    found = [*_whole(lines), ""]
    for title, table in (
        ("pull request", by_pull_request(lines)),
        ("operator", by_operator(lines)),
        ("machine", _by(lines, lambda line: line.machine)),
    ):
        wide = max((width(name) for name in (title, *table)), default=0)
        found.append(style.bold(f"{pad(title, wide)}  {'GPU-seconds':>12}"))
        ranked = sorted(table.items(), key=lambda item: (-item[1], item[0]))
        found += [f"{pad(name, wide)}  {seconds:12,.1f}" for name, seconds in ranked]
        found.append("")
    return found[:-1]


def moved(moves: Iterable[Move]) -> list[str]:
    """A line for each piece that was begun again, or given up."""
    return [
        f"moved: {move.name} ({move.machine}) from {move.source} to {move.to}: {move.why}"
        if move.to
        else f"not moved: {move.name} ({move.machine}) was lost at {move.source}: {move.why}"
        for move in moves
    ]


def by_operator(lines: Iterable[Spent]) -> dict[str, float]:
    """GPU-seconds of each operator, lost tries too; what was idle is nobody's."""
    return _by((line for line in lines if line.operator), lambda line: line.operator)


def by_pull_request(lines: Iterable[Spent]) -> dict[str, float]:
    """GPU-seconds of each pull request, idle ones too: the GPUs were held for it."""
    return _by(lines, lambda line: f"#{line.pull_request}" if line.pull_request else "none")


def _by(lines: Iterable[Spent], key: Callable[[Spent], str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        found[key(line)] = found.get(key(line), 0.0) + line.seconds
    return found


def _whole(lines: Sequence[Spent]) -> list[str]:
    spent = totals(lines)
    held = sum(spent.values())
    again = sum(spent.get(outcome, 0.0) for outcome in REPEATED)
    places = {line.place for line in lines}
    parts = [f"{_seconds(spent.get('kept', 0.0))} in what was kept"]
    parts += [f"{_seconds(again)} in what had to be begun again"] if again else []
    parts += [f"{_seconds(spent['duplicate'])} in what was there already"] if "duplicate" in spent else []
    parts += [f"{_seconds(spent['problem'])} in what could not be measured"] if "problem" in spent else []
    parts += [f"{_seconds(spent['stopped'])} in what was stopped"] if "stopped" in spent else []
    parts += [f"{_seconds(spent['idle'])} idle"] if "idle" in spent else []
    return [f"{_seconds(held)} on {len(places)} {'GPU' if len(places) == 1 else 'GPUs'}: {', '.join(parts)}"]


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} GPU-s"
