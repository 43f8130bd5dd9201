"""What a run did not measure, and why: every skipped, failed and unstable measurement, gathered by its reason."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from groundspeed.analysis.speedup import BASELINE, speedup_table
from groundspeed.records import Measurement, Record, Status
from groundspeed.report import units
from groundspeed.report.style import Style, printable

_RECORD_ONLY = ("energy over ", "device_hot from graphs ")
_LESS_ACCURATE = 4.0  # times the baseline's own error; rounding in another order stays well below it


@dataclass(frozen=True)
class _Remark:
    kind: str  # "skipped", "failed", "unstable", "noted"
    reason: str
    operator: str
    implementation: str
    case: str


Measured = Mapping[str, Sequence[Measurement]]  # operator → its measurements


def measured(records: Iterable[Record]) -> dict[str, Sequence[Measurement]]:
    """The measurements of records, by operator; of two records of one operator the later one stands."""
    return {record.header.operator: record.measurements for record in records}


def remarks(records: Iterable[Record], style: Style) -> list[str]:
    """The sections Failed, Unstable, Less accurate, Noted and Skipped; no line when there is nothing to say."""
    records = list(records)
    entries = measured(records)
    doubt = "kept, but the interval stayed wide or others used the GPU"
    return [
        *failed(entries, style),
        *_section(f"{style.bold('≈ Unstable')}  ({doubt})", "unstable", entries, style),
        *_less_accurate(records, style),
        *_section(f"{style.bold('Noted')}  (of what was measured)", "noted", entries, style),
        *skipped(entries, style),
    ]


def failed(entries: Measured, style: Style) -> list[str]:
    """What failed, by kind and reason."""
    return _section(style.bad(style.bold("Failed")), "failed", entries, style)


def skipped(entries: Measured, style: Style) -> list[str]:
    """What was left out, by reason."""
    return _section(style.bold("Skipped"), "skipped", entries, style)


def count(entries: Measured, status: Status) -> int:
    """How many measurements have this status."""
    return sum(entry.status == status for found in entries.values() for entry in found)


def _remarks_of(operator: str, entry: Measurement) -> list[_Remark]:
    """What is to be said of one measurement. Notes that only say how a figure was had stay in the record."""
    main = _remark(operator, entry)
    notes = [note for note in entry.notes if entry.status == "ok" and not note.startswith(_RECORD_ONLY)]
    noted = [_Remark("noted", printable(note), operator, entry.implementation, entry.case_label) for note in notes]
    return [main, *noted] if main else noted


def _remark(operator: str, entry: Measurement) -> _Remark | None:
    if entry.status == "ok":
        kind, reason = "unstable", entry.unstable
    elif entry.status == "failed":
        kind, reason = "failed", f"{entry.failure}: {entry.reason or 'no reason was recorded'}"
    else:
        kind, reason = "skipped", entry.reason or "no reason was recorded"
    return _Remark(kind, printable(reason), operator, entry.implementation, entry.case_label) if reason else None


def _inventory(entries: Measured) -> dict[str, dict[str, set[str]]]:
    """operator → implementation → its cases: what a remark can be about."""
    inventory: dict[str, dict[str, set[str]]] = {}
    for operator, found in entries.items():
        names = inventory.setdefault(operator, {})
        for entry in found:
            names.setdefault(entry.implementation, set()).add(entry.case_label)
    return inventory


def _section(title: str, kind: str, entries: Measured, style: Style) -> list[str]:
    """Each reason once; under it by operator the implementations, and the cases where not all are meant."""
    measured = ((operator, entry) for operator, measurements in entries.items() for entry in measurements)
    found = [remark for one in measured for remark in _remarks_of(*one) if remark.kind == kind]
    if not found:
        return []
    inventory = _inventory(entries)
    groups: dict[str, list[_Remark]] = {}
    for remark in found:
        groups.setdefault(_alike(remark), []).append(remark)
    lines = [title]
    for same in groups.values():
        several = len({remark.reason for remark in same}) > 1
        lines += _wrapped(f"for example: {same[0].reason}" if several else same[0].reason, style, "  ")
        everywhere = _everywhere(same, inventory)
        if everywhere:
            text = ", ".join(f"{backend}_* ({number})" for backend, number in everywhere.items())
            lines += [style.dim(line) for line in _wrapped(f"{'all operators':<16} {text}", style, "    ", 17)]
        rest = [remark for remark in same if _backend(remark.implementation) not in everywhere]
        for operator in dict.fromkeys(remark.operator for remark in rest):
            cases: dict[str, set[str]] = {}
            for remark in rest:
                if remark.operator == operator:
                    cases.setdefault(remark.implementation, set()).add(remark.case)
            for text in _names(cases, inventory[operator]):
                lines += [style.dim(line) for line in _wrapped(f"{operator:<16} {text}", style, "    ", 17)]
    return [*lines, ""]


def _everywhere(same: list[_Remark], inventory: dict[str, dict[str, set[str]]]) -> dict[str, int]:
    """Back ends of which these remarks concern every implementation and case of every operator, and how many those are.

    Of one or two operators the names say more.
    """
    concerned: dict[tuple[str, str], set[str]] = {}
    for remark in same:
        concerned.setdefault((remark.operator, remark.implementation), set()).add(remark.case)
    found = {}
    for backend in dict.fromkeys(_backend(remark.implementation) for remark in same):
        known = {
            (o, name): cases
            for o, names in inventory.items()
            for name, cases in names.items()
            if _backend(name) == backend
        }
        if len({operator for operator, _ in known}) > 2 and all(concerned.get(key) == known[key] for key in known):
            found[backend] = len(known)
    return found


def _backend(implementation: str) -> str:
    return implementation.partition("_")[0]


def _alike(remark: _Remark) -> str:
    """What reasons are gathered by: their words. Only a failure's figures are worth a line of their own."""
    return remark.reason if remark.kind == "failed" else re.sub(r"[\d.]+", "#", remark.reason)


def _names(cases: dict[str, set[str]], known: dict[str, set[str]]) -> list[str]:
    """Names in few words: a whole back end as ``cuda_* (9)``, and cases only where not all of them are meant."""
    whole = {name for name, concerned in cases.items() if concerned == known[name]}
    texts, done = [], set()
    for backend in dict.fromkeys(_backend(name) for name in cases):
        members = {name for name in known if _backend(name) == backend}
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
    title = style.bold("Less accurate") + f"  (within tolerance; {BASELINE} = 1)"
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
