"""The speedup table of one operator, for a terminal 80 columns wide.

One block a case: implementations from fastest to slowest with their median time, half the 99 % interval of the
median, speedup against the baseline from the same rounds, rate, share of the measured ceiling, and a bar of speed
against the fastest. What was not measured is not here: ``report.remarks`` collects it, with reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groundspeed.analysis.speedup import Row, group_speedups, speedup_table
from groundspeed.records import Record
from groundspeed.report import units
from groundspeed.report.style import Style, clip, pad, printable

QUANTITIES = {
    "device_cold": "device time, cold cache",
    "device_hot": "device time, warm cache",
    "call": "one synchronised call",
    "host": "host time to issue",
}
_LONGEST_NAME = 28
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class _Column:
    title: str
    width: int


_COLUMNS = (_Column("median", 9), _Column("± 99 %", 8), _Column("speedup", 9), _Column("rate", 13))
_CEILING = _Column("ceiling", 8)


def operator_table(record: Record, style: Style, quantity: str = "device_cold") -> list[str]:
    """The lines of one operator's table; a heading alone when nothing was measured."""
    rows = speedup_table(record, quantity=quantity)
    timed = [row for row in rows if row.time is not None]
    layout = _Layout.of(timed, style, record.header.bound)
    lines = [_heading(record, style, quantity)]
    if not timed:
        return [*lines, f"  {_why_empty(record, quantity)}", ""]
    lines.append(style.dim(layout.titles()))
    cases = _by_case(timed)
    for block in cases:
        lines.append(clip(_case_title(record, block[0]), style.width))
        fastest = min(row.time.value for row in block if row.time is not None)
        lines += [layout.line(row, fastest) for row in sorted(block, key=_time)]
    if len(cases) > 1:
        lines += _overall(timed, layout)
    return [*lines, ""]


def _why_empty(record: Record, quantity: str) -> str:
    there = {name for entry in record.measurements for name, samples in entry.samples.items() if samples}
    if there and quantity not in there:
        return f"nothing of {quantity}, but of {', '.join(sorted(there))}: type --quantity {min(there)}"
    return "nothing was timed: the reasons are beneath"


def _heading(record: Record, style: Style, quantity: str) -> str:
    header = record.header
    what = QUANTITIES.get(quantity, quantity)
    if header.environment.device == "cpu":
        what = what.replace("device time", "wall time")
    name = clip(header.operator, style.width)
    detail = clip(printable(f"{what}, on {header.machine}"), max(0, style.width - len(name) - 2))
    return f"{style.bold(name)}  {style.dim(detail)}"


def _case_title(record: Record, row: Row) -> str:
    entry = next(
        m for m in record.measurements if (m.dtype, m.shape_label) == (row.dtype, row.shape_label) and m.status == "ok"
    )
    moved = entry.bytes_read + entry.bytes_written
    facts = [f"moves {units.size(moved)}"] if moved else []
    if entry.bus_bytes:
        rates = "; rates are of these" if record.header.bound == "peer" else ""
        facts = [f"each GPU sends {units.size(entry.bus_bytes)}{rates}"]
    if entry.flops and record.header.bound == "compute":
        facts.append(units.rate(entry.flops, "FLOP"))
    detail = f"  ({', '.join(facts)})" if facts else ""
    return f" {row.dtype}  {row.shape_label}{detail}"


@dataclass(frozen=True)
class _Layout:
    """Column widths that fit the terminal, shared by all cases of an operator."""

    style: Style
    name: int
    ceiling: bool
    bar: int
    bound: str

    @classmethod
    def of(cls, rows: Sequence[Row], style: Style, bound: str) -> _Layout:
        longest = min(max((len(row.implementation) for row in rows), default=0), _LONGEST_NAME)
        room = style.width - 3 - sum(column.width for column in _COLUMNS)
        ceiling = any(row.ceiling_share is not None for row in rows) and room - _CEILING.width >= min(longest, 16)
        room -= _CEILING.width if ceiling else 0
        name = min(longest, room)
        left = room - name - 2
        return cls(style, name, ceiling, min(left, 16) if left >= 4 else 0, bound)

    def titles(self) -> str:
        columns = (*_COLUMNS, _CEILING) if self.ceiling else _COLUMNS
        return " " * (3 + self.name) + "".join(pad(column.title, column.width, ">") for column in columns)

    def line(self, row: Row, fastest: float) -> str:
        assert row.time is not None
        cells = [units.duration(row.time.value), _half_interval(row), _speedup(row), self._rate(row)]
        widths = [column.width for column in _COLUMNS]
        if self.ceiling:
            cells.append("–" if row.ceiling_share is None else units.percent(row.ceiling_share))
            widths.append(_CEILING.width)
        mark = "≈" if row.unstable else " "
        name = self.style.backend(pad(clip(row.implementation, self.name), self.name), row.implementation)
        if row.time.value == fastest:
            name = self.style.bold(name)
        bar = self.style.backend(_bar(fastest / row.time.value, self.bar), row.implementation) if self.bar else ""
        text = "".join(pad(cell, columns, ">") for cell, columns in zip(cells, widths, strict=True))
        return f" {mark} {name}{text}{'  ' + bar if bar else ''}".rstrip()

    def _rate(self, row: Row) -> str:
        if self.bound == "compute" and row.flops_per_second:
            return units.rate(row.flops_per_second, "FLOP/s")
        if self.bound == "peer" and row.bus_bytes_per_second:
            return units.rate(row.bus_bytes_per_second, "B/s")
        return units.rate(row.bytes_per_second, "B/s") if row.bytes_per_second else "–"


def _overall(rows: Iterable[Row], layout: _Layout) -> list[str]:
    """The geometric mean over the cases that an implementation and the baseline both ran, and how many those are."""
    groups = [group for group in group_speedups(rows) if group.value is not None]
    if not groups:
        return []
    most = max(group.compared for group in groups)
    lines = [f" all cases  {layout.style.dim('(geometric mean of the speedups)')}"]
    for group in sorted(groups, key=lambda g: -(g.value or 0.0)):
        name = layout.style.backend(pad(clip(group.group, layout.name), layout.name), group.group)
        over = "" if group.compared == most else f"  over {group.compared} of {most} cases"
        lines.append(f"   {name}{' ' * 17}{pad(f'{units.significant(group.value or 0.0)}×', 9, '>')}{over}")
    return lines


def _by_case(rows: Iterable[Row]) -> list[list[Row]]:
    blocks: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        blocks.setdefault(row.case, []).append(row)
    return list(blocks.values())


def _half_interval(row: Row) -> str:
    assert row.time is not None
    if not math.isfinite(row.time.high - row.time.low) or row.time.value <= 0:
        return "–"
    return units.percent((row.time.high - row.time.low) / 2 / row.time.value)


def _speedup(row: Row) -> str:
    return f"{units.significant(row.speedup.value)}×" if row.speedup is not None else "–"


def _time(row: Row) -> float:
    return row.time.value if row.time is not None else math.inf


def _bar(share: float, columns: int) -> str:
    """A bar of ``share`` of so many columns, in eighths of a column."""
    eighths = max(1, round(share * columns * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
