"""``groundspeed export``: the dashboard as one file, for a CI artifact or a mail."""

from __future__ import annotations

import argparse
from pathlib import Path

from dashboard.where import checkout, results_folder
from groundspeed.errors import UserError
from groundspeed.locations.place import READ_HELP, place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed export``."""
    parser.description = "Write the dashboard's views into one HTML file that needs no server and no network."
    parser.add_argument("file", type=Path, help="file to write, such as dashboard.html")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)


def run(args: argparse.Namespace) -> int:
    """Write the file. Raises UserError for what the user can mend."""
    from dashboard.export import write_export
    from dashboard.frames import Frames
    from dashboard.store import open_store

    results = results_folder(args)
    if args.file.is_dir():
        raise UserError(f"{args.file} is a folder: name the file to write, such as {args.file / 'dashboard.html'}")
    if not args.file.parent.is_dir():
        raise UserError(f"cannot write {args.file}: there is no folder {args.file.parent}")
    frames = Frames(open_store(results).snapshot)
    if not frames.snapshot.rows:
        raise UserError(f"no results could be read in {results}: measure something first")
    try:
        views = write_export(frames, args.file, checkout(args, results))
    except OSError as error:
        raise UserError(f"cannot write {args.file}: {error.strerror}") from error
    print(f"{args.file}: {views} views, {args.file.stat().st_size / 1e6:.1f} MB")
    return 0
