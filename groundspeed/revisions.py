"""Ranges of commits, as git names them."""

from __future__ import annotations

from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.git import git


def since(root: Path, revision: str) -> frozenset[str]:
    """The commits of HEAD's history that ``revision`` does not contain, as full hashes.

    Raises UserError where the folder is no checkout, and where git knows no such revision.
    """
    listed = git(root, "rev-list", f"{revision}..HEAD", "--")
    if listed is None:
        if git(root, "rev-parse", "--git-dir") is None:
            raise UserError(
                f"{root} is no git checkout (or git is missing): which commits follow {revision!r}? "
                "pass the checkout with --project DIR"
            )
        raise UserError(f"{root}: git knows no revision {revision!r}; type: git log --oneline")
    return frozenset(listed.split())
