"""Base and head as two folders of their own: snapshots, so that an edit during the run changes nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.gate import git
from groundspeed.gate.git import WORKTREE, Change, NoCommit, Trailer
from groundspeed.gate.plan import IMPLS
from groundspeed.tree import Tree


@dataclass(frozen=True)
class Revisions:
    """What is compared: full hashes, and what the user called them. ``head`` may be "worktree"."""

    base: str
    head: str
    base_label: str
    head_label: str
    aa: bool = False


@dataclass(frozen=True)
class Versions:
    """Both trees, unpacked, and what git knows of the way from one to the other."""

    base: Tree
    head: Tree
    changes: tuple[Change, ...]
    trailers: tuple[Trailer, ...]


def find_revisions(project: Path, base: str | None, head: str, aa: bool) -> Revisions:
    """Resolve what the user typed. Base is the commit at which head branched off the revision given.

    Raises NoCommit where the clone lacks a commit, where no base is given, and where base and head hold the same
    files without ``aa``: nothing could be compared.
    """
    tip = git.resolve(project, "HEAD" if head == WORKTREE else head)
    if aa:
        label = f"{head} ({tip[:12]})"
        return Revisions(tip, head if head == WORKTREE else tip, label, label, aa=True)
    if base is None:
        raise UserError("gate needs --base REV, the revision to compare with; type: groundspeed gate --base main")
    commit = git.resolve(project, base)
    fork = git.merge_base(project, commit, tip)
    if head == WORKTREE:
        if not git.changes(project, fork, WORKTREE):
            raise NoCommit(f"empty diff: the worktree is {base} ({fork[:12]}); compare a revision with itself by --aa")
    elif git.same_tree(project, fork, tip):
        raise NoCommit(f"empty diff: {head} and {base} hold the same files; compare a revision with itself by --aa")
    base_label = f"{base} ({fork[:12]})" if fork == commit else f"{fork[:12]}, where head left {base}"
    head_label = "worktree" if head == WORKTREE else f"{head} ({tip[:12]})"
    return Revisions(fork, head if head == WORKTREE else tip, base_label, head_label)


@contextmanager
def unpacked(project: Path, revisions: Revisions) -> Iterator[Versions]:
    """Both versions in a temporary folder, removed afterwards. Raises NoCommit where one has no ``impls/``."""
    with tempfile.TemporaryDirectory(prefix="groundspeed-gate-") as name:
        folder = Path(name)
        head = _snapshot(project, revisions.head, folder / "head")
        if revisions.aa:
            shutil.copytree(head, folder / "base" / IMPLS, symlinks=True)
            base = folder / "base" / IMPLS
        else:
            base = _snapshot(project, revisions.base, folder / "base")
        tip = "HEAD" if revisions.head == WORKTREE else revisions.head
        changes = () if revisions.aa else git.changes(project, revisions.base, revisions.head)
        trailers = () if revisions.aa else git.trailers(project, revisions.base, tip)
        yield Versions(Tree(base), Tree(head), changes, trailers)


def read_at(project: Path, revision: str, path: str) -> str | None:
    """A project file's text at a revision or in the worktree; None where it does not exist."""
    if revision != WORKTREE:
        return git.show(project, revision, path)
    file = project / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _snapshot(project: Path, revision: str, target: Path) -> Path:
    if revision == WORKTREE:
        if not (project / IMPLS).is_dir():
            raise NoCommit(f"the worktree has no {IMPLS}/, so there is nothing to compare")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(project / IMPLS, target / IMPLS, symlinks=True, ignore=ignored)
    else:
        target.mkdir()
        if not git.extract(project, revision, IMPLS, target):
            raise NoCommit(f"{revision[:12]} has no {IMPLS}/, so there is nothing to compare")
    return target / IMPLS
