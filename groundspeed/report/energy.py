"""The energy table of one operator: joules a call, against the baseline's, and what a watt brings."""

from __future__ import annotations

from collections.abc import Iterable

from groundspeed.analysis.speedup import BASELINE
from groundspeed.records import Measurement, Record
from groundspeed.report import units
from groundspeed.report.style import Style, clip, pad, printable

_TITLES = ("energy a call", "of eager's", "a watt")
_WIDTHS = (15, 12, 18)


def has_energy(record: Record) -> bool:
    """Whether the energy of any call was measured."""
    return any(entry.energy_nj for entry in record.measurements)


def energy_table(record: Record, style: Style) -> list[str]:
    """A block a case, from the least energy to the most; a heading and the reason when nothing was measured."""
    head = f"energy a call, idle draw included, on {record.header.machine}"
    lines = [f"{style.bold(record.header.operator)}  {style.dim(printable(head))}"]
    measured = [entry for entry in record.measurements if entry.energy_nj]
    if not measured:
        return [*lines, "  none was measured: type groundspeed run --energy, or --tier full, on a GPU", ""]
    name = min(max(len(entry.implementation) for entry in measured), style.width - 3 - sum(_WIDTHS))
    lines.append(style.dim(" " * (3 + name) + "".join(map(_right, _TITLES, _WIDTHS))))
    for case, entries in _by_case(measured).items():
        lines.append(clip(f" {case}", style.width))
        base = next((entry.energy_nj for entry in entries if entry.implementation == BASELINE), None)
        for entry in sorted(entries, key=lambda entry: entry.energy_nj or 0.0):
            shown = style.backend(pad(clip(entry.implementation, name), name), entry.implementation)
            lines.append(f"   {shown}{''.join(map(_right, _cells(entry, base), _WIDTHS))}".rstrip())
    return [*lines, ""]


def per_watt(entry: Measurement) -> str:
    """FLOP/s a watt (that is, FLOP a joule), bytes where the operator counts no operations; a dash without either."""
    if not entry.energy_nj:
        return "–"
    if entry.flops:
        return units.rate(entry.flops / entry.energy_nj * 1e9, "FLOP/s/W")
    moved = entry.bytes_read + entry.bytes_written
    return units.rate(moved / entry.energy_nj * 1e9, "B/s/W") if moved else "–"


def _cells(entry: Measurement, base: float | None) -> tuple[str, str, str]:
    assert entry.energy_nj
    ratio = f"{units.significant(entry.energy_nj / base)}×" if base else "–"
    return units.energy(entry.energy_nj), ratio, per_watt(entry)


def _by_case(entries: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    cases: dict[str, list[Measurement]] = {}
    for entry in entries:
        cases.setdefault(entry.case_label, []).append(entry)
    return cases


def _right(text: str, width: int) -> str:
    return pad(text, width, ">")
