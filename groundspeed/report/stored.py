"""Which stored records a table is made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.records import Record, RecordError, find_records, read_record


def machines(results: Path) -> list[str]:
    """Machines with at least one record."""
    return sorted({path.parent.parent.parent.name for path in find_records(results)})


def runs(results: Path, machine: str) -> list[str]:
    """Run ids of a machine, oldest first."""
    return sorted({path.parent.name for path in find_records(results) if path.parent.parent.parent.name == machine})


def run_records(results: Path, machine: str, run_id: str) -> tuple[list[Record], list[str]]:
    """The records of a run and what was wrong with those that cannot be read."""
    found, problems = [], []
    for path in sorted((results / machine / "records" / run_id).glob("*.jsonl.gz")):
        try:
            found.append(read_record(path))
        except RecordError as error:
            problems.append(str(error))
    return found, problems


def latest_records(results: Path, machine: str, tiers: Iterable[str]) -> list[Record]:
    """Of each operator the newest record of these tiers in which something was timed, by operator."""
    wanted = set(tiers)
    newest: dict[str, Record] = {}
    for run_id in runs(results, machine):
        found, problems = run_records(results, machine, run_id)
        if problems:
            raise UserError(f"{problems[0]}: restore it from git, or delete it")
        for record in found:
            if record.header.tier in wanted and any(entry.status == "ok" for entry in record.measurements):
                newest[record.header.operator] = record
    return [newest[operator] for operator in sorted(newest)]
