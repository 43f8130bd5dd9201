"""Which files of a results folder hold results, and whether they changed since they were read."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

RECORD_SUFFIX = ".jsonl.gz"
BENCHMARKS = "benchmarks.json"  # asv's: units and parameter names
MACHINE = "machine.json"
LIMIT = 256 << 20  # bytes of one file, packed or not: what is larger is no result file

_NO_RESULTS = frozenset({BENCHMARKS, MACHINE, "asv.conf.json"})
_NO_RECORDS = frozenset({"noise", "soak", "gate-trials", "calibration", "checks", "profiles"})  # in a machine's folder


class Stamp(NamedTuple):
    """A file is read again when either changes."""

    mtime_ns: int
    size: int


@dataclass
class Scan:
    """Paths are relative to the results folder, with forward slashes."""

    results: dict[str, Stamp] = field(default_factory=dict)  # record files, asv's and pytest-benchmark's JSON
    described: dict[str, Stamp] = field(default_factory=dict)  # benchmarks.json and machine.json
    problems: dict[str, str] = field(default_factory=dict)


def scan(results: Path) -> Scan:
    """Walk the folder. Hidden entries are passed over and links to folders not followed: nothing outside is read.

    Nor are the folders of a machine in which other things than results are kept, such as noise floors and profiles.

    Raises OSError when the results folder itself cannot be listed; a folder below it that cannot is a problem.
    """
    found = Scan()
    with os.scandir(results) as entries:
        _sort(list(entries), "", found)
    return found


def _sort(entries: list[os.DirEntry[str]], prefix: str, found: Scan) -> None:
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = prefix + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name in _NO_RECORDS and prefix.count("/") == 1:
                    continue
                with os.scandir(entry.path) as below:
                    _sort(list(below), path + "/", found)
            elif entry.name.endswith((".json", RECORD_SUFFIX)) and entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                stamp = Stamp(stat.st_mtime_ns, stat.st_size)
                kind = found.described if entry.name in (BENCHMARKS, MACHINE) else found.results
                if entry.name not in _NO_RESULTS or kind is found.described:
                    kind[path] = stamp
        except FileNotFoundError:
            continue  # gone between listing and looking: the next scan says so
        except OSError as error:
            found.problems[path] = f"cannot be listed: {error.strerror}"


def nearest(path: str, name: str, known: Container[str]) -> str | None:
    """The file of that name beside ``path`` or in the closest folder above it; None when there is none."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        candidate = f"{folder}/{name}" if folder else name
        if candidate in known:
            return candidate
    return None
