"""The end of a run: where its time went, and where its results are."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

from groundspeed.records import Record
from groundspeed.report.style import Style
from groundspeed.report.units import clock, percent, significant

# Building, compiling and tuning happen once a change, and energy takes a second by what it is: none of it says how
# long measuring takes.
_ONCE = ("rehearsal", "load", "prepare", "first run", "first call", "energy")
# The device works or a compiler does; checking and timing calls are the host's and the device's by turns.
_WORKING = ("rehearsal", "load", "prepare", "first run", "first call", "time", "ceilings", "energy")
_WORDS = {
    "rehearsal": "compiling and tuning beforehand",
    "time": "timing",
    "calls": "timing calls",
    "check": "checking",
    "inputs": "making inputs and references",
    "memory": "weighing memory",
    "prepare": "preparing",
    "first run": "first runs",
    "join": "joining ranks",
    "first call": "first calls in fresh processes",
    "load": "building and loading",
    "start": "starting workers",
    "ceilings": "ceilings",
    "energy": "metering energy",
}


def time_split(records: Sequence[Record], style: Style) -> list[str]:
    """Wall time by phase, and seconds for one measurement outside preparing; nothing for records without a split."""
    # Sweeps that one rehearsal went before have its seconds each, to the millisecond.
    rehearsal = sum({record.header.rehearsal_s for record in records})
    phases: dict[str, float] = {"rehearsal": rehearsal} if rehearsal else {}
    for record in records:
        for name, seconds in record.footer.seconds.items():
            phases[name] = phases.get(name, 0.0) + seconds
    total = rehearsal + phases.pop("total", 0.0) or sum(phases.values())
    if not total:
        return []
    rest = total - sum(phases.values())
    if rest > 0.005 * total:
        phases["the rest"] = rest
    ordered = sorted(phases.items(), key=lambda phase: -phase[1])
    shown = [(name, seconds) for name, seconds in ordered if seconds >= 0.005 * total]
    parts = [f"{_WORDS.get(name, name)} {percent(seconds / total)}" for name, seconds in shown]
    working = percent(sum(phases.get(name, 0.0) for name in _WORKING) / total)
    lines = textwrap.wrap(
        f"{clock(total)}, {working} of it timing or compiling: {', '.join(parts)}".replace(" %", "\N{NO-BREAK SPACE}%"),
        width=style.width,
        initial_indent="Time     ",
        subsequent_indent=" " * 9,
    )
    timed = sum(entry.status == "ok" for record in records for entry in record.measurements)
    if timed:
        each = (total - sum(phases.get(name, 0.0) for name in _ONCE)) / timed
        apart = "building, preparing and energy apart" if "energy" in phases else "building and preparing apart"
        lines.append(f"         {significant(each)} s for each of {timed} measurements, {apart}")
    return lines


def where(folder: Path, records: Sequence[Record], command: str, results: Path | None = None) -> list[str]:
    """Where the records lie, and what to type next.

    ``command`` is how groundspeed is called here, ``results`` the results folder as it was typed, if it was.
    """
    option = f" --results {shlex.quote(str(results))}" if results else ""
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return [
        f"Results  {shown}/ ({len(records)} {'file' if len(records) == 1 else 'files'})",
        f"Again    {command} table{option}",
        f"Browse   {command} dash{option}",
    ]
