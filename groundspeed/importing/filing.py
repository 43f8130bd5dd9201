"""Putting imported records among the others: whole runs, each file once."""

from __future__ import annotations

import errno
import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from groundspeed.analysis.foreign import NotResults, is_asv, is_pytest_benchmark, read_object
from groundspeed.errors import UserError
from groundspeed.git import NO_COMMIT, Commit
from groundspeed.importing.nvbench import is_nvbench, read_nvbench
from groundspeed.importing.pytest_benchmark import read_pytest_benchmark
from groundspeed.records import SUFFIX, Record, RecordError, read_record, record_path, write_record

_DIGITS = 12
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Filed:
    """What became of one machine's share of a file. ``known``: it had been imported before, and nothing was added."""

    folder: Path
    records: tuple[Record, ...]
    known: bool


def read_file(path: Path) -> tuple[Record, ...]:
    """The records in a file, without a run id. Raises NotResults, or OSError when it cannot be read."""
    document = read_object(path)
    try:
        if document.get("benchmarks") == []:
            raise NotResults("holds no benchmarks")
        if is_pytest_benchmark(document):
            found = read_pytest_benchmark(document)
        elif is_nvbench(document):
            found = read_nvbench(document, path)
        elif is_asv(document):
            raise NotResults("is asv's, which needs no import: put it under results/<machine>/ and it is shown")
        else:
            raise NotResults("is no result file of pytest-benchmark or NVBench")
        if not found:
            raise NotResults("holds no result")
    except NotResults as error:
        raise NotResults(f"{path}: {error}") from error
    return found


def import_file(path: Path, results: Path, machine: str = "", commit: Commit = NO_COMMIT) -> tuple[Filed, ...]:
    """File what a file holds under its machines, or under the one named. Importing it again adds nothing.

    ``commit`` is what was measured, for a file that does not say. Raises NotResults for a file that cannot be imported,
    and then nothing of it has been; OSError.
    """
    _check_name(machine)
    found = tuple(_of_commit(path, record, commit) for record in read_file(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
    shares = _shares(path, found, machine)
    before = {folder.parent.parent.name: folder for folder in results.glob(f"*/records/*-{digest}")}
    if commit.hash and (other := [folder for folder in before.values() if _commit_of(folder) != commit.hash]):
        of = f"of commit {_commit_of(other[0])[:8]}" if _commit_of(other[0]) else "of no commit"
        raise NotResults(f"{path}: imported before, as {of}: delete {other[0]} to import it as of {commit.hash[:8]}")
    if elsewhere := [folder for name, folder in before.items() if name not in shares]:
        return (Filed(elsewhere[0], found, known=True),)
    return tuple(
        Filed(before[name], share, known=True) if name in before else _file(results, name, share, digest, path)
        for name, share in shares.items()
    )


def _of_commit(path: Path, record: Record, commit: Commit) -> Record:
    """The record as one of this commit. Raises NotResults where the file names another."""
    named = record.header.commit
    if not commit.hash or named == commit.hash:
        return record
    if named:
        raise NotResults(f"{path}: says that it is of commit {named[:8]}, not {commit.hash[:8]}: leave --commit out")
    header = msgspec.structs.replace(record.header, commit=commit.hash, commit_time=commit.time)
    return msgspec.structs.replace(record, header=header)


def _commit_of(folder: Path) -> str:
    """The commit of a run that is filed; "" where it has none, or no record of it can be read."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            return read_record(path).header.commit
        except RecordError:
            continue
    return ""


def _shares(path: Path, found: Sequence[Record], machine: str) -> dict[str, tuple[Record, ...]]:
    """The records of each machine."""
    names = {record.header.machine for record in found}
    if "" in names and not machine:
        raise NotResults(f"{path}: does not say on which machine it was measured; pass --machine NAME")
    if machine and len(names) > 1:
        raise NotResults(f"{path}: holds results of {', '.join(sorted(names))}: import it without --machine")
    if machine:
        return {machine: tuple(found)}
    return {name: tuple(r for r in found if r.header.machine == name) for name in sorted(names)}


def _file(results: Path, machine: str, records: tuple[Record, ...], digest: str, path: Path) -> Filed:
    """Write a run beside the others under a name of its own, then give it its name: all of it appears, or nothing."""
    header = records[0].header
    when = datetime.fromisoformat(header.started).strftime("%Y%m%dT%H%M%SZ")
    run_id = f"{when}-{header.commit[:8] or 'nocommit'}-{digest}"
    named = tuple(
        msgspec.structs.replace(record, header=msgspec.structs.replace(record.header, run_id=run_id, machine=machine))
        for record in records
    )
    home = record_path(results, machine, run_id, "any").parent
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent.parent, prefix=".import-") as folder:
        run = Path(folder) / run_id
        try:
            for record in named:
                write_record(run / record_path(results, machine, run_id, record.header.operator).name, record)
        except ValueError as error:
            raise NotResults(f"{path}: {error}") from error
        try:
            run.rename(home)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return Filed(home, named, known=True)  # somebody else imported it in this moment
    return Filed(home, named, known=False)


def _check_name(machine: str) -> None:
    if machine and not _MACHINE.fullmatch(machine):
        raise UserError(f"--machine {machine!r}: expected letters, digits, dots, dashes or underscores")
