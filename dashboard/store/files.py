"""Which files of a results folder hold results, and whether they changed since they were read."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from groundspeed.records import SELECTION_FILE

RECORD_SUFFIX = ".jsonl.gz"
BENCHMARKS = "benchmarks.json"  # asv's: units and parameter names
MACHINE = "machine.json"
_SETTLED_NS = 5_000_000_000  # a folder's own time is believed when it is older
LIMIT = 256 << 20  # bytes of one file, packed or not: what is larger is no result file

_NO_RESULTS = frozenset({BENCHMARKS, MACHINE, "asv.conf.json"})
_NO_RECORDS = frozenset({"noise", "soak", "gate-trials", "calibration", "checks", "profiles"})  # in a machine's folder


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """A file is read again when either changes. No collector walks the hundreds of thousands of them."""

    mtime_ns: int
    size: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What was learnt of one result file: the chunk with its rows, or why it has none."""

    stamp: Stamp
    chunk: str = ""
    problem: str = ""


Listing = tuple[int, int]  # of a run's folder: its mtime_ns, and how many records were in it
Known = Mapping[str, Mapping[str, Entry]]  # by folder and name


@dataclass
class Scan:
    """Folders and paths are relative to the results folder, with forward slashes; the folder itself is ""."""

    results: dict[str, dict[str, Stamp]] = field(default_factory=dict)  # by folder and name: records, asv's and others'
    unchanged: set[str] = field(default_factory=set)  # folders of runs that hold what is known of them
    described: dict[str, Stamp] = field(default_factory=dict)  # benchmarks.json and machine.json
    problems: dict[str, str] = field(default_factory=dict)

    def paths(self) -> list[str]:
        """The result files, but for those of ``unchanged`` folders."""
        return [joined(folder, name) for folder, names in self.results.items() for name in names]


class Scanner:
    """Walks one results folder again and again.

    A record is written once, so one that was read is not looked at again, only its name; and a folder of a run whose
    own time has not changed since it was listed is not listed. What could not be read (a file still being copied,
    say) is looked at each time. So is a folder whose time is older than that of a file in it: not every file system
    keeps the time of folders.

    ``listed`` is what another scanner of the folder had listed.
    """

    def __init__(self, results: Path, listed: Mapping[str, Listing] | None = None) -> None:
        self._results = results
        self.listed: dict[str, Listing] = dict(listed or {})  # folders of runs

    def scan(self, known: Known) -> Scan:
        """Hidden entries are passed over and links to folders not followed: nothing outside is read.

        Nor are the folders of a machine in which other things than results are kept, such as noise floors and profiles.

        Raises OSError when the results folder itself cannot be listed; a folder below it that cannot is a problem.
        """
        found = Scan()
        with os.scandir(self._results) as entries:
            self._sort(list(entries), "", found, known)
        return found

    def _sort(self, entries: list[os.DirEntry[str]], folder: str, found: Scan, known: Known) -> None:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = joined(folder, entry.name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name in _NO_RECORDS and folder and "/" not in folder:
                        continue
                    if is_run(path) and path in known and self._is_unchanged(entry, path, found, known[path]):
                        continue
                    with os.scandir(entry.path) as below:
                        self._sort(list(below), path, found, known)
                elif entry.name.endswith((".json", RECORD_SUFFIX)) and entry.is_file(follow_symlinks=False):
                    _file(entry, folder, path, found)
            except FileNotFoundError:
                continue  # gone between listing and looking: the next scan says so
            except OSError as error:
                found.problems[path] = f"cannot be listed: {error.strerror}"

    def _is_unchanged(self, entry: os.DirEntry[str], path: str, found: Scan, held: Mapping[str, Entry]) -> bool:
        """Whether the folder of a run holds exactly the records that were read from it; if so, it is noted."""
        mtime = entry.stat(follow_symlinks=False).st_mtime_ns
        if self.listed.get(path) != (mtime, len(held)):
            names = set(os.listdir(entry.path))
            others = [name for name in names - held.keys() if name != SELECTION_FILE and not name.startswith(".")]
            if others or not held.keys() <= names or any(one.problem for one in held.values()):
                self.listed.pop(path, None)
                return False
            # Two changes within one tick of the file system's clock have one time.
            newest = max(one.stamp.mtime_ns for one in held.values())
            if newest - _SETTLED_NS < mtime < time.time_ns() - _SETTLED_NS:
                self.listed[path] = mtime, len(held)
        found.unchanged.add(path)
        return True


def _file(entry: os.DirEntry[str], folder: str, path: str, found: Scan) -> None:
    stat = entry.stat(follow_symlinks=False)
    stamp = Stamp(stat.st_mtime_ns, stat.st_size)
    if entry.name in (BENCHMARKS, MACHINE):
        found.described[path] = stamp
    elif entry.name not in _NO_RESULTS:
        found.results.setdefault(folder, {})[entry.name] = stamp


def scan(results: Path) -> Scan:
    """Everything that lies there now. Raises OSError as ``Scanner.scan`` does."""
    return Scanner(results).scan({})


def joined(folder: str, name: str) -> str:
    """A path of its two halves; ``folder`` may be ""."""
    return f"{folder}/{name}" if folder else name


def is_run(folder: str) -> bool:
    """Whether a folder is one of a machine's runs: ``<machine>/records/<run>``."""
    parts = folder.split("/")
    return len(parts) == 3 and parts[1] == "records"


def nearest(path: str, name: str, known: Container[str]) -> str | None:
    """The file of that name beside ``path`` or in the closest folder above it; None when there is none."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        candidate = f"{folder}/{name}" if folder else name
        if candidate in known:
            return candidate
    return None
