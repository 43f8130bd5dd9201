"""What git says of the project: the commit that is measured, and whether the files still are that commit."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Commit:
    """A commit: its full hash, its committer date in ISO 8601, and whether the measured files differ from it."""

    hash: str
    time: str
    dirty: bool = False


NO_COMMIT = Commit("", "")


def head(root: Path, measured: tuple[str, ...] = ("impls", "groundspeed")) -> Commit:
    """The commit checked out under ``root``; NO_COMMIT outside a git repository."""
    found = commit(root, "HEAD")
    if found is NO_COMMIT:
        return found
    changed = git(root, "status", "--porcelain", "--", *measured)
    return Commit(found.hash, found.time, bool(changed))


def commit(root: Path, revision: str) -> Commit:
    """The commit that a revision names; NO_COMMIT where there is none."""
    said = git(root, "log", "-1", "--format=%H %cI", revision)
    if not said:
        return NO_COMMIT
    name, _, when = said.partition(" ")
    return Commit(name, when)


def git(root: Path, *arguments: str) -> str | None:
    """A git command's output without surrounding white space; None when git is absent or refuses."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
