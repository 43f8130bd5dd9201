"""What ``groundspeed store`` does: examine record files, rebuild the cache, choose what to prune. No Dash here."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dashboard.store import Store, open_store
from dashboard.store.doubles import doubles, place_of
from dashboard.store.files import RECORD_SUFFIX, scan
from dashboard.store.store import copy_of
from dashboard.store.times import milliseconds
from groundspeed.records import SELECTION_FILE, Record, RecordError, find_records, read_record

AHEAD = timedelta(hours=1)  # a runner's clock may be so far ahead of this one's


@dataclass(frozen=True)
class Fault:
    """Something about one file, relative to the results folder; ``counts`` where its rows are shown all the same."""

    file: str
    what: str
    counts: bool


@dataclass(frozen=True)
class Old:
    """A record file that pruning would delete."""

    path: Path
    started: datetime
    size: int


def examine(results: Path, now: datetime) -> tuple[int, list[Fault]]:
    """How many record files there are under the folder, hidden ones aside, and what is wrong with which of them."""
    paths = _record_files(results)
    faults, elsewhere, readable = list[Fault](), dict[str, str](), set[str]()
    for path in paths:
        file = path.relative_to(results).as_posix()
        try:
            record = read_record(path)
        except RecordError as error:
            faults.append(Fault(file, str(error).removeprefix(f"{path}: "), counts=False))
            continue
        readable.add(file)
        header = record.header
        place = place_of(header.machine, header.run_id, header.operator)
        if place != file:
            elsewhere[file] = place
        if ahead := _ahead(record, now):
            faults.append(Fault(file, ahead, counts=True))
    extra = doubles(elsewhere.items(), readable.__contains__)
    faults += [Fault(file, copy_of(other), counts=False) for file, other in extra.items()]
    faults += [
        Fault(file, f"by its header belongs to {place}", counts=True)
        for file, place in elsewhere.items()
        if file not in extra
    ]
    faults += [Fault(file, "was left by a write that was interrupted", counts=False) for file in _remnants(results)]
    return len(paths), sorted(faults, key=lambda fault: fault.file)


def _record_files(results: Path) -> list[Path]:
    """Those that the dashboard reads."""
    return [results / file for file in sorted(scan(results).paths()) if file.endswith(RECORD_SUFFIX)]


def _remnants(results: Path) -> list[str]:
    """Temporary files of records.write_whole, and folders of an import: whoever wrote them did not end as it should."""
    found = [*results.glob(f"*/records/*/.*{RECORD_SUFFIX}.*"), *results.glob("*/.import-*")]
    return [path.relative_to(results).as_posix() for path in found]


def _ahead(record: Record, now: datetime) -> str:
    started = when(record)
    if started is None:
        return f"says it began at {record.header.started!r}, which is no time"
    if started > now + AHEAD:
        return f"says it began at {record.header.started}: the clock of the runner, or of this machine, is wrong"
    return ""


def when(record: Record) -> datetime | None:
    """When a record's sweep began; None where its header holds no time."""
    found = milliseconds(record.header.started)
    return None if found is None else datetime.fromtimestamp(found / 1000, UTC)


def rebuild(results: Path) -> tuple[Store, float]:
    """Throw the cache away, of all versions, and read everything anew; with the seconds that took.

    Raises OSError where it cannot be deleted.
    """
    for folder in (results / ".cache").glob("store-*"):
        shutil.rmtree(folder)
    began = time.monotonic()
    store = open_store(results)
    return store, time.monotonic() - began


def cache_size(results: Path) -> int:
    """Bytes of the cache."""
    return sum(path.stat().st_size for path in (results / ".cache").rglob("*") if path.is_file())


def before(results: Path, limit: datetime) -> tuple[list[Old], list[str]]:
    """The record files whose sweeps began before a moment, and a line for each file that does not say when it did."""
    found, problems = _dated(results)
    return [old for _, old in found if old.started < limit], problems


def all_but(results: Path, keep: int) -> tuple[list[Old], list[str]]:
    """The record files that are not among the newest ``keep`` of their machine and operator; lines as ``before``."""
    found, problems = _dated(results)
    series: dict[tuple[str, str], list[Old]] = {}
    for key, old in found:
        series.setdefault(key, []).append(old)
    return [old for each in series.values() for old in sorted(each, key=_age, reverse=True)[keep:]], problems


def _age(old: Old) -> tuple[datetime, str]:
    """Sorts by time; of two that began at once by the run's id."""
    return old.started, old.path.parent.name


def _dated(results: Path) -> tuple[list[tuple[tuple[str, str], Old]], list[str]]:
    found, problems = [], []
    for path in find_records(results):
        try:
            record = read_record(path)
        except RecordError as error:
            problems.append(f"{error}: kept")
            continue
        started = when(record)
        if started is None:
            problems.append(f"{path}: says it began at {record.header.started!r}, which is no time: kept")
        else:
            key = record.header.machine, record.header.operator
            found.append((key, Old(path, started, path.stat().st_size)))
    return found, problems


def delete(old: Iterable[Old]) -> Iterator[Path]:
    """Delete record files, and the folders of runs that hold none then; yields each file that is gone."""
    for each in old:
        each.path.unlink(missing_ok=True)
        folder = each.path.parent
        if {path.name for path in folder.iterdir()} <= {SELECTION_FILE}:
            (folder / SELECTION_FILE).unlink(missing_ok=True)
            folder.rmdir()
        yield each.path
