"""A folder that follows a location, which is what commands read; and the two ways between a folder and a location."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

from groundspeed.caches import cache_folder
from groundspeed.errors import UserError
from groundspeed.git import git
from groundspeed.locations import exchange
from groundspeed.locations.branch import BranchShelf, push_branch
from groundspeed.locations.exchange import Moved
from groundspeed.locations.folder import FolderShelf
from groundspeed.locations.place import Branch, Bucket, Location
from groundspeed.locations.shelf import Shelf

_REMOTE = "origin"
_REPOSITORY = ".repository"  # in a mirror, of a branch of a repository one is not in


def mirrored(place: Path | Location, root: Path) -> Path:
    """The folder itself, or one in the user's cache that now holds what the location does.

    ``root`` is the checkout whose branches ``git:BRANCH`` means. Raises UserError where the location cannot be read or
    holds nothing.
    """
    if isinstance(place, Path):
        return place
    folder = mirror_of(place, root)
    with _locked(folder):
        exchange.pull(_filled(place, root, folder), folder, mirror=True)
    return folder


def synchronised(place: Location, root: Path) -> None:
    """Bring a mirror up to date, both ways: what was noted in it about changes goes to the location."""
    folder = mirror_of(place, root)
    with _locked(folder):
        exchange.pull(_shelf(place, root, folder), folder, mirror=True)
        if isinstance(place, Bucket):
            exchange.push_lines(folder, _shelf(place, root, folder))
        else:
            push_branch(lambda: _branch(place, root, folder), lambda shelf: _noted(folder, shelf))


def _noted(folder: Path, shelf: BranchShelf) -> str:
    exchange.push_lines(folder, shelf)
    return "Note what was decided about changes"


def push(results: Path, place: Path | Location, root: Path) -> Moved:
    """Put there what a results folder holds and the place lacks. Raises UserError as ``exchange.push``."""
    if isinstance(place, Path):
        _check_apart(results, place)
        return exchange.push(results, FolderShelf(place))
    with _locked(mirror_of(place, root)) as folder:
        if isinstance(place, Bucket):
            return exchange.push(results, _shelf(place, root, folder))
        moved = Moved()

        def put(shelf: BranchShelf) -> str:
            nonlocal moved
            moved = exchange.push(results, shelf)
            return f"Add {moved.added} result files"

        push_branch(lambda: _branch(place, root, folder), put)
        return moved


def pull(place: Path | Location, results: Path, root: Path) -> Moved:
    """Add to a results folder what a place holds. Raises UserError as ``mirrored``."""
    if isinstance(place, Path):
        _check_apart(results, place)
        if not place.is_dir():
            raise UserError(f"{place} is no folder: expected one with results")
        return exchange.pull(FolderShelf(place), results)
    with _locked(mirror_of(place, root)) as folder:
        return exchange.pull(_filled(place, root, folder), results)


def remove(paths: Collection[str], place: Location, root: Path) -> None:
    """Delete files of a location, and of its mirror."""
    with _locked(mirror_of(place, root)) as folder:
        if isinstance(place, Bucket):
            _shelf(place, root, folder).remove(paths)
        else:

            def put(shelf: BranchShelf) -> str:
                shelf.remove([path for path in paths if path in shelf.held()])
                return f"Prune {len(paths)} records"

            push_branch(lambda: _branch(place, root, folder), put)
        exchange.pull(_shelf(place, root, folder), folder, mirror=True)


def mirror_of(place: Location, root: Path) -> Path:
    """Where the mirror of a location is kept."""
    of_checkout = isinstance(place, Branch) and not place.repository
    text = f"{place.url if isinstance(place, Bucket) else (place.repository, place.branch)}"
    full = f"{text} {root.resolve() if of_checkout else ''} {os.environ.get('AWS_ENDPOINT_URL', '')}"
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", str(place)).strip("-.")[-60:]
    return cache_folder() / "locations" / f"{readable}-{hashlib.sha256(full.encode()).hexdigest()[:12]}"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """One process at a time brings a mirror up to date; a second waits, and then finds little to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        why = f"{folder} cannot be written to ({error.strerror})"
        raise UserError(f"no place for a copy of the results: {why}; set GROUNDSPEED_CACHE to a folder") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)


def _filled(place: Location, root: Path, folder: Path) -> Shelf:
    """A place to read from. Raises UserError for a branch that nobody has pushed to yet."""
    shelf = _shelf(place, root, folder)
    if isinstance(shelf, BranchShelf) and not shelf.tip:
        raise UserError(f"{place}: no such branch; the first groundspeed store push {place} makes it")
    return shelf


def _shelf(place: Location, root: Path, folder: Path) -> Shelf:
    if isinstance(place, Branch):
        return _branch(place, root, folder)
    from groundspeed.locations.bucket import BucketShelf

    return BucketShelf(place)


def _branch(place: Branch, root: Path, folder: Path) -> BranchShelf:
    if git(root, "check-ref-format", "--branch", place.branch) is None and git(Path("/"), "--version") is not None:
        raise UserError(f"{place}: {place.branch!r} is no name of a branch")
    if place.repository:
        store = folder / _REPOSITORY
        if not (store / "HEAD").is_file():
            subprocess.run(["git", "init", "--quiet", "--bare", str(store)], check=True, capture_output=True)
        return BranchShelf(place, store, _absolute(place.repository), shallow=True)
    if git(root, "rev-parse", "--git-dir") is None:
        raise UserError(f"{place}: {root} is no git checkout; name the repository: git:REPOSITORY#{place.branch}")
    if _REMOTE in (git(root, "remote") or "").split():
        return BranchShelf(place, root, _REMOTE)
    worktrees = git(root, "worktree", "list", "--porcelain") or ""
    if f"branch refs/heads/{place.branch}\n" in f"{worktrees}\n":
        raise UserError(f"{place}: the branch is checked out; commit there, or push to a remote {_REMOTE!r}")
    return BranchShelf(place, root, None)


def _absolute(repository: str) -> str:
    """A path is meant from where one stands, and git would look from elsewhere."""
    return str(Path(repository).resolve()) if Path(repository).exists() else repository


def _check_apart(results: Path, other: Path) -> None:
    if results.resolve() == other.resolve():
        raise UserError(f"{other} is the results folder itself: name another place")
