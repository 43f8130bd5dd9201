"""Which stored records a table is made of."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from groundspeed.analysis.claims.shelf import LOOK_BACK
from groundspeed.records import SUFFIX, Header, Record, RecordError, age, find_records, read_header, read_record


def machines(results: Path) -> list[str]:
    """Machines with at least one record."""
    return sorted({path.parent.parent.parent.name for path in find_records(results)})


def runs(results: Path, machine: str) -> list[str]:
    """Run ids of a machine, oldest first."""
    return sorted({path.parent.name for path in _of_machine(results, machine)})


def _of_machine(results: Path, machine: str) -> list[Path]:
    """Record files of a machine, oldest run first."""
    return sorted((results / machine / "records").glob(f"*/*{SUFFIX}"), key=lambda path: (path.parent.name, path.name))


def newest_first(results: Path, machine: str) -> dict[str, list[Path]]:
    """Record files of a machine by operator, those of the newest commit first; last runs that cannot be read.

    One header a run is read: all of a run are of one commit.
    """
    paths = _of_machine(results, machine)
    ages: dict[Path, tuple[float, str]] = {}
    for path in paths:
        if path.parent not in ages and (header := _header(path)):
            ages[path.parent] = age(header)
    found: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: ages.get(path.parent, (0.0, path.parent.name)), reverse=True):
        found.setdefault(path.name.removesuffix(SUFFIX), []).append(path)
    return found


def _header(path: Path) -> Header | None:
    try:
        return read_header(path)
    except RecordError:
        return None  # whoever reads the record says so


def run_records(results: Path, machine: str, run_id: str) -> tuple[list[Record], list[str]]:
    """The records of a run and what was wrong with those that cannot be read."""
    found, problems = [], []
    for path in sorted((results / machine / "records" / run_id).glob(f"*{SUFFIX}")):
        try:
            found.append(read_record(path))
        except RecordError as error:
            problems.append(str(error))
    return found, problems


def history(newest: Iterable[Path], tiers: Iterable[str]) -> tuple[list[Record], list[str]]:
    """The records of these tiers among an operator's ``LOOK_BACK`` newest, in their order (``newest_first``); and what
    was wrong with those that cannot be read.
    """
    wanted = set(tiers)
    found, problems = [], []
    for path in islice(newest, LOOK_BACK):
        try:
            record = read_record(path)
        except RecordError as error:
            problems.append(str(error))
            continue
        if record.header.tier in wanted:
            found.append(record)
    return found, problems


def latest_records(
    results: Path, machine: str, tiers: Iterable[str], apart_from: str = ""
) -> tuple[list[Record], list[str]]:
    """Of each operator the newest record of these tiers in which something was timed, by operator; and what was wrong
    with those that could not be read on the way to it. Records of the commit ``apart_from`` are passed over.
    """
    wanted = set(tiers)
    newest: dict[str, Record] = {}
    problems = []
    for path in reversed(_of_machine(results, machine)):
        operator = path.name.removesuffix(SUFFIX)
        if operator in newest:
            continue
        try:
            record = read_record(path)
        except RecordError as error:
            problems.append(str(error))
            continue
        if apart_from and record.header.commit == apart_from:
            continue
        if record.header.tier in wanted and any(entry.status == "ok" for entry in record.measurements):
            newest[operator] = record
    return [newest[operator] for operator in sorted(newest)], problems
