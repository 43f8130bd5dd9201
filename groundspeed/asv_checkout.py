"""A past commit's implementation files, and nothing else of it, where a worker can load them."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from groundspeed.errors import UserError

FOLDER = "impls"


def check_out(repository: Path, commit: str, destination: Path) -> Path:
    """Write the commit's ``impls/`` under ``destination`` and return its path; its neighbours there are removed.

    A commit without that folder gives an empty one: every implementation is then absent from it. Raises UserError
    when git does not know the commit.
    """
    shutil.rmtree(destination.parent, ignore_errors=True)
    impls = destination / FOLDER
    impls.mkdir(parents=True)
    if not _git(repository, "ls-tree", "--name-only", commit, FOLDER).strip():
        return impls
    with tarfile.open(fileobj=io.BytesIO(_git(repository, "archive", "--format=tar", commit, FOLDER))) as archive:
        archive.extractall(destination, filter="data")
    return impls


def _git(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"git {' '.join(arguments)} in {repository}: {message[-1] if message else done.returncode}")
    return done.stdout
