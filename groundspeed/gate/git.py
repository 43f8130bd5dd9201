"""The few questions the gate asks of git. Every call is a list of arguments: nothing passes through a shell."""

from __future__ import annotations

import difflib
import io
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from groundspeed.errors import UserError

WORKTREE = "worktree"
TRAILER = "Perf-Accepted"


class NoCommit(UserError):
    """A revision that is not in this clone, or has no common ancestor in it: what cannot be compared cannot pass."""


@dataclass(frozen=True)
class Change:
    """One line of the diff, paths relative to the project. ``status`` is git's letter: A, M, D, R, T."""

    status: str
    path: str
    old_path: str = ""  # of a rename


@dataclass(frozen=True)
class Trailer:
    """One ``Perf-Accepted:`` line and the commit that carries it."""

    commit: str
    text: str


def resolve(project: Path, revision: str, example: str = "groundspeed gate --base main") -> str:
    """The full hash of a commit. Raises NoCommit with the nearest names, and how to fetch it where that may help.

    ``example`` is what to type instead of an empty revision.
    """
    if not revision.strip():
        raise UserError(f"a revision is empty, expected a branch, tag or commit; type: {example}")
    if revision.startswith("-"):
        raise UserError(f"{revision!r} is no revision")
    done = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise NoCommit(f"{revision}: no such commit in this clone{_near(project, revision)}{_hint(project)}")
    return done.stdout.decode().strip()


def merge_base(project: Path, base: str, head: str) -> str:
    """The commit that head branched off base at: what base gained since is not head's doing."""
    done = _git(project, "merge-base", base, head)
    if done.returncode:
        raise NoCommit(f"{base[:12]} and {head[:12]} have no common commit in this clone{_hint(project)}")
    return done.stdout.decode().strip()


def changes(project: Path, base: str, head: str) -> tuple[Change, ...]:
    """What differs between base and head, renames followed; with the worktree as head, untracked files are added."""
    revisions = [base] if head == WORKTREE else [base, head]
    flags = ["--name-status", "-z", "--find-renames=50%", "--relative", "--no-ext-diff", "--no-textconv"]
    found = list(_parse_name_status(_checked(project, "diff", *flags, *revisions, "--")))
    if head == WORKTREE:
        listed = _checked(project, "ls-files", "--others", "--exclude-standard", "-z")
        found += [Change("A", path) for path in _fields(listed)]
    return tuple(found)


def trailers(project: Path, base: str, head: str) -> tuple[Trailer, ...]:
    """Every ``Perf-Accepted:`` trailer of the commits in base..head, newest first."""
    form = f"--format=%H%x00%(trailers:key={TRAILER},valueonly,separator=%x01,unfold)"
    parts = _fields(_checked(project, "log", "-z", form, f"{base}..{head}", "--"))
    found = []
    for commit, values in zip(parts[0::2], parts[1::2], strict=True):
        found += [Trailer(commit.strip(), text.strip()) for text in values.split("\x01") if text.strip()]
    return tuple(found)


def show(project: Path, revision: str, path: str) -> str | None:
    """A file's text at a commit, or None where it has none."""
    done = _git(project, "show", f"{revision}:./{path}")
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def extract(project: Path, revision: str, folder: str, target: Path) -> bool:
    """Unpack a folder of a commit under ``target``; False where the commit has no such folder.

    Raises UserError when a file of the commit is not unpacked, as an ``export-ignore`` attribute would have it: a
    version that lacks files must not be measured as if it were whole.
    """
    if _git(project, "cat-file", "-e", f"{revision}:./{folder}").returncode:
        return False
    archive = _checked(project, "archive", "--format=tar", revision, "--", folder)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")
    for name in _fields(_checked(project, "ls-tree", "-r", "-z", "--name-only", revision, "--", f"{folder}/")):
        if not os.path.lexists(target / name):
            raise UserError(f"{revision[:12]}:{name} was not unpacked: has it the attribute export-ignore?")
    return True


def same_tree(project: Path, base: str, head: str) -> bool:
    """Whether two commits hold the same files."""
    return base == head or _git(project, "diff", "--quiet", base, head, "--").returncode == 0


def _parse_name_status(output: bytes) -> list[Change]:
    parts = iter(_fields(output))
    found = []
    for status in parts:
        if status[0] in "RC":
            old, new = next(parts), next(parts)
            found.append(Change("R", new, old) if status[0] == "R" else Change("A", new))
        else:
            found.append(Change(status[0], next(parts)))
    return found


def _fields(output: bytes) -> list[str]:
    text = output.decode("utf-8", "surrogateescape")
    return text.removesuffix("\0").split("\0") if text else []


def _near(project: Path, revision: str) -> str:
    """The branches and tags whose names are nearest, or ""."""
    listed = _git(project, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
    close = difflib.get_close_matches(revision, listed.stdout.decode(errors="replace").splitlines(), n=3)
    return f": did you mean {' or '.join(map(repr, close))}?" if close else ""


def _hint(project: Path) -> str:
    """How to get a commit that is not here; "" where there is no remote to get it from."""
    done = _git(project, "rev-parse", "--is-shallow-repository")
    if done.stdout.strip() == b"true":
        return "; the clone is shallow; type: git fetch --unshallow (in CI: fetch-depth: 0)"
    return "; type: git fetch" if _git(project, "remote").stdout.strip() else ""


def _checked(project: Path, *arguments: str) -> bytes:
    done = _git(project, *arguments)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"git {arguments[0]}: {message[-1] if message else f'exit status {done.returncode}'}")
    return done.stdout


def _git(project: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-c", "core.quotePath=false", *arguments]
    try:
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise UserError("git is not installed, and commits are read with it") from error
