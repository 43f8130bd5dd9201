"""A scratch clone of the project, in which slowdowns are committed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groundspeed.errors import UserError

IMPLS = "impls"
_FILES = ("asv.conf.json", "pyproject.toml")


@dataclass(frozen=True)
class Scratch:
    """A repository that nobody else uses. ``base`` is the commit whose operators are the project's own."""

    root: Path
    base: str

    @property
    def impls(self) -> Path:
        return self.root / IMPLS

    def to_base(self) -> None:
        """Put the files back as they are in ``base``."""
        _git(self.root, "checkout", "--quiet", "--force", "-B", "trials", self.base)

    def commit(self, message: str) -> str:
        """Commit what was changed in the operators; returns the commit. Raises UserError where nothing was."""
        _git(self.root, "add", "--all", "--", IMPLS)
        _git(self.root, "commit", "--quiet", "--message", message)
        return _git(self.root, "rev-parse", "HEAD")

    def copy_impls(self, target: Path) -> Path:
        """The operators as they lie, in a folder of their own."""
        shutil.copytree(self.impls, target / IMPLS, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        return target / IMPLS


@contextmanager
def scratch_clone(project: Path) -> Iterator[Scratch]:
    """A clone of the project's HEAD, or, of a project without history, a repository made of its operators."""
    with tempfile.TemporaryDirectory(prefix="groundspeed-trials-") as folder:
        root = Path(folder) / "project"
        if head_of(project):
            _git(project, "clone", "--quiet", "--no-hardlinks", str(project), str(root))
        else:
            root.mkdir()
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(project / IMPLS, root / IMPLS, symlinks=True, ignore=ignored)
            for name in _FILES:
                shutil.copy(project / name, root / name)
            _git(root, "init", "--quiet")
        _git(root, "config", "user.name", "groundspeed trials")
        _git(root, "config", "user.email", "trials@localhost")
        if not head_of(root):
            _git(root, "add", "--all")
            _git(root, "commit", "--quiet", "--message", "The operators as they are")
        yield Scratch(root, _git(root, "rev-parse", "HEAD"))


def head_of(root: Path) -> str:
    """The commit that a folder's own repository is at, or "" where it is the top of none."""
    if not (root / ".git").exists():
        return ""
    done = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], cwd=root, capture_output=True, text=True)
    return done.stdout.strip()


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"git {arguments[0]}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout.strip()
