"""The first calls of one operator: with empty caches, with full ones, and in the sweep's own warm process."""

from __future__ import annotations

from groundspeed.records import FirstCall, Measurement, Record
from groundspeed.report import units
from groundspeed.report.style import Style, clip, pad, printable

_TITLES = ("cold", "load", "prepare", "first run", "warm", "in the sweep")
_WIDTHS = (9, 9, 9, 11, 9, 14)


def has_first_calls(record: Record) -> bool:
    """Whether any first call was measured in a process of its own."""
    return any(entry.first_call_cold or entry.first_call_warm for entry in record.measurements)


def first_call_table(record: Record, style: Style) -> list[str]:
    """One line for each implementation and case, the quickest cold one first; the parts are those of the cold call."""
    head = f"first call in fresh processes, caches empty, then full, on {record.header.machine}"
    lines = [f"{style.bold(record.header.operator)}  {style.dim(clip(printable(head), _room(record, style)))}"]
    measured = [entry for entry in record.measurements if entry.first_call_cold or entry.first_call_warm]
    if not measured:
        return [*lines, "  none was measured: type groundspeed run --first-call cold", ""]
    name = min(max(len(entry.implementation) for entry in measured), max(8, style.width - 3 - sum(_WIDTHS)))
    lines.append(style.dim(" " * (3 + name) + "".join(map(_right, _TITLES, _WIDTHS))))
    for case in dict.fromkeys(entry.case_label for entry in measured):
        lines.append(clip(f" {case}", style.width))
        alike = [entry for entry in measured if entry.case_label == case]
        for entry in sorted(alike, key=lambda entry: _total(entry.first_call_cold)):
            shown = style.backend(pad(clip(entry.implementation, name), name), entry.implementation)
            lines.append(f"   {shown}{''.join(map(_right, _cells(entry), _WIDTHS))}".rstrip())
    return [*lines, ""]


def _cells(entry: Measurement) -> tuple[str, ...]:
    cold, warm = entry.first_call_cold, entry.first_call_warm
    parts = (cold.load_ns, cold.prepare_ns, cold.run_ns) if cold else (None, None, None)
    totals = (cold.total_ns if cold else None, *parts, warm.total_ns if warm else None, entry.first_call_ns)
    return tuple("–" if value is None else units.duration(value) for value in totals)


def _total(call: FirstCall | None) -> float:
    return call.total_ns if call else float("inf")


def _room(record: Record, style: Style) -> int:
    return max(0, style.width - len(record.header.operator) - 2)


def _right(text: str, width: int) -> str:
    return pad(text, width, ">")
