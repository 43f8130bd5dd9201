"""Results from a folder to a place and back: records that are there stay as they are, and nothing is counted twice."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from groundspeed.locations.kinds import NOTES, Kind, fault_of, kind_of, together, travelling, union
from groundspeed.locations.shelf import Held, Shelf
from groundspeed.whole_files import replace_whole

_AT_ONCE = 256  # files held in memory


@dataclass(frozen=True)
class Moved:
    """What a push or a pull came to: files added, changed, and there already; a line for each that was left alone."""

    added: int = 0
    changed: int = 0
    same: int = 0
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{self.added} file{'s' * (self.added != 1)} added", f"{self.same} there already"]
        return ", ".join([*words, *([f"{self.changed} brought up to date"] if self.changed else [])])


def push(results: Path, shelf: Shelf) -> Moved:
    """Put what a results folder holds and a place lacks there.

    A record that is not whole is left out, and one that is there with other contents stays: each is named. Raises
    UserError for what the place refuses.
    """
    there = shelf.held()
    paths = [path for path in travelling(results) if path != NOTES]
    refused: list[str] = []
    new = {path: results / path for path in paths if path not in there}
    for path in [path for path in new if kind_of(path) is Kind.RECORD]:
        if fault := fault_of(results / path):
            refused.append(f"{path}: {fault}: not put there")
            del new[path]
    late = shelf.add(new)  # others put these meanwhile
    both = [path for path in paths if path in there or path in late]
    refused += [f"{path}: {why}" for path in both if (why := _conflict(results, path, there, shelf))]
    others = [path for path in both if kind_of(path) is not Kind.RECORD]
    differing = [path for path in others if path in late or not there[path].is_known_to_be(results / path)]
    changed = sum(_bring_up(results, batch, shelf) for batch in _batched(differing))
    changed += push_lines(results, shelf)
    return Moved(len(new) - len(late), changed, len(both) - changed, tuple(refused))


def _conflict(results: Path, path: str, there: Mapping[str, Held], shelf: Shelf) -> str:
    """Why a record that is at both is not the same; "" where it is."""
    held = there.get(path)
    if kind_of(path) is not Kind.RECORD or (held and held.size == (results / path).stat().st_size):
        return ""
    ((_, theirs),) = shelf.read([path])
    if theirs == (results / path).read_bytes():
        return ""
    fault = fault_of(results / path)
    return f"is there with other contents, which are left; this one {fault or 'is a whole record'}"


def _bring_up(results: Path, paths: list[str], shelf: Shelf) -> int:
    """Files other than records that are at both; how many changed there."""
    changed = 0
    for path, theirs in shelf.read(paths):
        mine = (results / path).read_bytes()
        if mine == theirs:
            continue
        newer = shelf.is_newer(path, mine, (results / path).stat().st_mtime)
        after = together(kind_of(path), mine, theirs, newer)
        if after != theirs:
            shelf.replace(path, after)
            changed += 1
    return changed


def push_lines(results: Path, shelf: Shelf) -> int:
    """Add the lines of NOTES that a place lacks; 1 where there were any."""
    mine = _read_notes(results)
    there = set(shelf.lines().splitlines())
    new = [line for line in union(mine, b"").splitlines() if line not in there]
    if new:
        shelf.add_lines(b"".join(line + b"\n" for line in new))
    return int(bool(new))


def pull(shelf: Shelf, results: Path, mirror: bool = False) -> Moved:
    """Add what a place holds to a results folder. A mirror follows the place: what went there goes here too.

    Each file appears whole, by a rename. Raises UserError for what the place refuses, OSError for the folder.
    """
    there = shelf.held()
    wanted, refused = [], []
    for path, held in there.items():
        if not (results / path).exists():
            wanted.append(path)
        elif kind_of(path) is not Kind.RECORD:
            if not held.is_known_to_be(results / path):
                wanted.append(path)
        elif (results / path).stat().st_size != held.size:
            # Records are immutable: one of the two is damaged, or not all there yet.
            if mirror or fault_of(results / path):
                wanted.append(path)
            else:
                refused.append(f"{path}: is there with other contents; the one here is left")
    added = changed = 0
    for batch in _batched(wanted):
        for path, theirs in shelf.read(batch):
            new, old = _take(results / path, path, theirs, there[path], shelf, mirror)
            added, changed = added + new, changed + old
    changed += _pull_lines(results, shelf)
    if mirror:
        _drop(results, there)
    return Moved(added, changed, len(there) - added - changed - len(refused), tuple(refused))


def _take(target: Path, path: str, theirs: bytes, held: Held, shelf: Shelf, mirror: bool) -> tuple[int, int]:
    """Put one file's contents; (1, 0) where there was none, (0, 1) where they changed what was there."""
    mine = target.read_bytes() if target.exists() else None
    kind = kind_of(path)
    after = theirs
    if mine is not None and not mirror and kind is not Kind.RECORD and mine != theirs:
        after = together(kind, mine, theirs, shelf.is_newer(path, mine, target.stat().st_mtime))
    if mine != after:
        replace_whole(target, after)
    if after == theirs and held.modified is not None:
        os.utime(target, (held.modified, held.modified))
    return (1, 0) if mine is None else (0, int(mine != after))


def _pull_lines(results: Path, shelf: Shelf) -> int:
    mine = _read_notes(results)
    after = union(mine, shelf.lines())
    if len(after.splitlines()) == len(union(mine, b"").splitlines()):
        return 0
    replace_whole(results / NOTES, after)
    return 1


def _read_notes(results: Path) -> bytes:
    try:
        return (results / NOTES).read_bytes()
    except FileNotFoundError:
        return b""


def _drop(results: Path, there: Mapping[str, Held]) -> None:
    for path in [path for path in travelling(results) if path not in there and path != NOTES]:
        (results / path).unlink()
        for folder in (results / path).parents:
            if folder == results or any(folder.iterdir()):
                break
            folder.rmdir()


def _batched(paths: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(paths)
    while batch := list(itertools.islice(rest, _AT_ONCE)):
        yield batch
