"""``groundspeed export``: the dashboard as one file, for a CI artifact or a mail."""

from __future__ import annotations

import argparse
from pathlib import Path

from groundspeed.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed export``."""
    parser.description = "Write the dashboard's views into one HTML file that needs no server and no network."
    parser.add_argument("file", type=Path, help="file to write, such as dashboard.html")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results folder (default: results)")


def run(args: argparse.Namespace) -> int:
    """Write the file. Raises UserError for what the user can mend."""
    from dashboard.export import write_export
    from dashboard.frames import Frames
    from dashboard.store import open_store

    if not args.results.is_dir():
        raise UserError(f"no results folder {args.results}: measure something first, or name one with --results")
    if args.file.is_dir():
        raise UserError(f"{args.file} is a folder: name the file to write, such as {args.file / 'dashboard.html'}")
    frames = Frames(open_store(args.results).snapshot)
    if frames.snapshot.measurements.is_empty():
        raise UserError(f"no results could be read in {args.results}: measure something first")
    try:
        views = write_export(frames, args.file, args.results.resolve().parent)
    except OSError as error:
        raise UserError(f"cannot write {args.file}: {error.strerror}") from error
    print(f"{args.file}: {views} views, {args.file.stat().st_size / 1e6:.1f} MB")
    return 0
