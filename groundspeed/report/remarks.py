"""What a run did not measure, and why: every skipped, failed and unstable measurement, gathered by its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from groundspeed.analysis.speedup import BASELINE, speedup_table
from groundspeed.records import Measurement, Record
from groundspeed.report import units
from groundspeed.report.style import Style, printable

_LESS_ACCURATE = 4.0  # times the baseline's own error; rounding in another order stays well below it


@dataclass(frozen=True)
class _Remark:
    kind: str  # "Skipped", "Failed", "Unstable"
    reason: str
    operator: str
    implementation: str
    case: str


def remarks(records: Iterable[Record], style: Style) -> list[str]:
    """The sections Failed, Unstable, Less accurate and Skipped of a run; no line when there is nothing to say."""
    records = list(records)
    found = [_remark(record, m) for record in records for m in record.measurements]
    inventory = _inventory(records)
    lines: list[str] = []
    for kind, title in (
        ("Failed", style.bad(style.bold("Failed"))),
        ("Unstable", style.bold("≈ Unstable") + "  (kept, but the interval stayed wide)"),
    ):
        lines += _section(title, [r for r in found if r and r.kind == kind], inventory, style)
    lines += _less_accurate(records, style)
    lines += _section(style.bold("Skipped"), [r for r in found if r and r.kind == "Skipped"], inventory, style)
    return lines


def failures(records: Iterable[Record]) -> int:
    """How many measurements failed."""
    return sum(m.status == "failed" for record in records for m in record.measurements)


def _remark(record: Record, entry: Measurement) -> _Remark | None:
    if entry.status == "skipped":
        kind, reason = "Skipped", entry.reason or "no reason was recorded"
    elif entry.status == "failed":
        kind, reason = "Failed", f"{entry.failure}: {entry.reason or 'no reason was recorded'}"
    elif entry.unstable:
        kind, reason = "Unstable", entry.unstable
    else:
        return None
    return _Remark(kind, printable(reason), record.header.operator, entry.implementation, entry.case_label)


def _inventory(records: Iterable[Record]) -> dict[str, dict[str, set[str]]]:
    """operator → implementation → its cases: what a remark can be about."""
    inventory: dict[str, dict[str, set[str]]] = {}
    for record in records:
        names = inventory.setdefault(record.header.operator, {})
        for entry in record.measurements:
            names.setdefault(entry.implementation, set()).add(entry.case_label)
    return inventory


def _section(title: str, found: list[_Remark], inventory: dict[str, dict[str, set[str]]], style: Style) -> list[str]:
    if not found:
        return []
    lines = [title]
    for reason in dict.fromkeys(remark.reason for remark in found):
        lines += _wrapped(reason, style, "  ")
        same = [remark for remark in found if remark.reason == reason]
        for operator in dict.fromkeys(remark.operator for remark in same):
            cases: dict[str, set[str]] = {}
            for remark in same:
                if remark.operator == operator:
                    cases.setdefault(remark.implementation, set()).add(remark.case)
            for text in _names(cases, inventory[operator]):
                lines += [style.dim(line) for line in _wrapped(f"{operator:<16} {text}", style, "    ", 17)]
    return [*lines, ""]


def _names(cases: dict[str, set[str]], known: dict[str, set[str]]) -> list[str]:
    """Names in few words: a whole back end as ``cuda_* (9)``, and cases only where not all of them are meant."""
    whole = {name for name, concerned in cases.items() if concerned == known[name]}
    texts, done = [], set()
    for backend in dict.fromkeys(name.partition("_")[0] for name in cases):
        members = {name for name in known if name.partition("_")[0] == backend}
        if len(members) > 1 and members <= whole:
            texts.append(f"{backend}_* ({len(members)})")
            done |= members
    texts += [name for name in cases if name in whole - done]
    grouped: dict[frozenset[str], list[str]] = {}
    for name, concerned in cases.items():
        if name not in whole:
            grouped.setdefault(frozenset(concerned), []).append(name)
    lines = [", ".join(texts)] if texts else []
    for these, names in grouped.items():
        total = len(known[names[0]])
        shown = "; ".join(sorted(these)) if len(these) <= 2 else f"{len(these)} of {total} cases"
        lines.append(f"{', '.join(names)} ({shown})")
    return lines


def _less_accurate(records: Iterable[Record], style: Style) -> list[str]:
    """Implementations that are right within the tolerance, and yet further from float64 than the baseline is."""
    worst: dict[tuple[str, str], float] = {}
    for record in records:
        for row in speedup_table(record):
            if row.status == "ok" and row.error_ratio is not None and row.error_ratio >= _LESS_ACCURATE:
                key = row.operator, row.implementation
                worst[key] = max(worst.get(key, 0.0), row.error_ratio)
    if not worst:
        return []
    title = style.bold("Less accurate") + f"  (within tolerance; × {BASELINE}'s error)"
    body = [f"    {operator:<16} {name} {units.significant(ratio)}×" for (operator, name), ratio in worst.items()]
    return [title, *body, ""]


def _wrapped(text: str, style: Style, indent: str, hanging: int = 2) -> list[str]:
    return textwrap.wrap(
        text,
        width=style.width,
        initial_indent=indent,
        subsequent_indent=indent + " " * hanging,
        break_on_hyphens=False,
    )
