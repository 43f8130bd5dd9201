"""What ``compare A B`` accepts as A and B, and the stored results that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from groundspeed.analysis.foreign import NotResults, read_foreign
from groundspeed.analysis.stored import Stored, from_record
from groundspeed.errors import UserError
from groundspeed.git import git
from groundspeed.records import SUFFIX, Record, RecordError, find_records, read_record

LATEST = "latest"
HELP = "a record or JSON file, a folder of records, or [MACHINE:]REV, [MACHINE:]RUN-ID, [MACHINE:]latest"


@dataclass(frozen=True)
class Source:
    """The stored results that an argument names."""

    label: str
    stored: tuple[Stored, ...]
    remarks: tuple[str, ...] = ()


def load(argument: str, results: Path, root: Path) -> Source:
    """Find and read what an argument of ``compare`` names. Raises UserError, saying what there is."""
    path = Path(argument)
    if path.is_file():
        return Source(path.name, tuple(_read_file(path)))
    if path.is_dir():
        return _of_records(argument, sorted(path.rglob(f"*{SUFFIX}")), f"{argument} holds no record files (*{SUFFIX})")
    machine, colon, what = argument.rpartition(":")
    machines = {folder.name for folder in results.iterdir() if folder.is_dir()} if results.is_dir() else set()
    if colon and machine not in machines:
        known = ", ".join(sorted(machines)) or "none"
        raise UserError(f"{argument}: no results of a machine {machine!r} under {results}: there are {known}")
    paths = [path for path in find_records(results) if not machine or path.is_relative_to(results / machine)]
    return _stored_run(argument, what, paths, results, machine, root)


def _stored_run(argument: str, what: str, paths: list[Path], results: Path, machine: str, root: Path) -> Source:
    """Records of one run or commit; where there are none, asv's own files of that commit."""
    if what == LATEST:
        runs = sorted({path.parent.name for path in paths})
        return _of_records(argument, [p for p in paths if runs and p.parent.name == runs[-1]], "no records are stored")
    of_run = [path for path in paths if path.parent.name == what]
    if of_run:
        return _of_records(argument, of_run, "")
    commit = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{what}^{{commit}}") or what
    if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
        raise UserError(f"{argument}: neither a file, a stored run nor a commit; A and B are {HELP}")
    records, remarks = _read_records(paths)
    found = [record for record in records if record.header.commit.startswith(commit) and not record.header.dirty]
    if found:
        stored = tuple(entry for record in found for entry in from_record(record))
        return Source(f"{argument} ({commit[:12]})", stored, tuple(remarks))
    files = sorted(results.glob(f"{machine or '*'}/{commit[:8]}-*.json"))
    if files:
        return Source(f"{argument} ({commit[:12]}, asv)", tuple(entry for file in files for entry in _read_file(file)))
    commits = sorted({record.header.commit[:12] for record in records if record.header.commit})
    there = f"there are {', '.join(commits[-5:])}" if commits else "there are none"
    raise UserError(f"{argument}: no results of commit {commit[:12]} under {results}: {there}; type: groundspeed run")


def _of_records(label: str, paths: list[Path], none: str) -> Source:
    if not paths:
        raise UserError(f"{label}: {none}; type: groundspeed run")
    records, remarks = _read_records(paths)
    return Source(label, tuple(entry for record in records for entry in from_record(record)), tuple(remarks))


def _read_records(paths: Iterable[Path]) -> tuple[list[Record], list[str]]:
    records, remarks = [], []
    for path in paths:
        try:
            records.append(read_record(path))
        except RecordError as error:
            remarks.append(str(error))
    return records, remarks


def _read_file(path: Path) -> list[Stored]:
    try:
        if path.name.endswith(SUFFIX):
            return list(from_record(read_record(path)))
        return read_foreign(path)
    except (NotResults, RecordError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
