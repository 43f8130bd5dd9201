"""Which results folder, which checkout and which of the stored names a command of the dashboard means."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.locations.mirror import mirrored
from groundspeed.locations.place import Location
from groundspeed.project import find_project, near

if TYPE_CHECKING:
    from dashboard.store import Snapshot


def results_folder(arguments: argparse.Namespace) -> Path:
    """The folder of ``--results``, or a copy of what lies at that location; else the checkout's.

    Raises UserError when it does not exist, or cannot be read.
    """
    given: Path | Location | None = arguments.results
    if given is not None and not isinstance(given, Path):
        return mirrored(given, checkout_of(arguments))
    results = given or find_project(getattr(arguments, "project", None)).results
    if not results.is_dir():
        raise UserError(
            f"no results folder {results}: measure something first (groundspeed run), or pass --results DIR"
        )
    return results


def checkout(arguments: argparse.Namespace, results: Path) -> Path:
    """The checkout whose claims are shown: that of ``--project``, else the one that the current folder lies in.

    With ``--results`` of a folder alone it is the folder above the results, which may be another project's.
    """
    project: Path | None = getattr(arguments, "project", None)
    if project is None and isinstance(arguments.results, Path):
        return results.resolve().parent
    return checkout_of(arguments) if arguments.results is not None else find_project(project).root


def checkout_of(arguments: argparse.Namespace) -> Path:
    """The checkout that ``--project`` or the current folder names; where there is none, the current folder."""
    project: Path | None = getattr(arguments, "project", None)
    if project is not None:
        return find_project(project).root
    try:
        return find_project(None).root
    except UserError:
        return Path.cwd()


def tell_problems(snapshot: Snapshot) -> None:
    """A line on standard error for each file of the results that could not be read, or was passed over."""
    for file, reason in snapshot.problems.iter_rows():
        print(f"groundspeed: {file}: {reason}", file=sys.stderr)


def known(what: str, asked: str | None, names: Sequence[str]) -> str:
    """``asked``, or the first of ``names``. Raises UserError with the names when it is none of them."""
    if not names:
        raise UserError(f"these results hold no {what}: measure something first (groundspeed run)")
    if asked is None:
        return names[0]
    if asked not in names:
        raise UserError(f"unknown {what} {asked!r}{near(asked, names)}")
    return asked
