"""Add results of pytest-benchmark or NVBench to the stored ones, as records that every command reads.

groundspeed import .benchmarks/*/*.json            pytest-benchmark's
groundspeed import softmax.json --commit HEAD     NVBench's --json or --jsonbin

A file that was imported before adds nothing. asv's files need no import: the dashboard and compare read them.

Exit status: 0 all imported, 2 at least one file could not be; the others are.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from groundspeed.analysis.foreign import NotResults
from groundspeed.errors import UserError
from groundspeed.git import NO_COMMIT, Commit, commit
from groundspeed.importing.filing import Filed, import_file
from groundspeed.locations.place import folder
from groundspeed.project import find_project
from groundspeed.writable import check_writable

BAD = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON of pytest-benchmark or NVBench")
    parser.add_argument("--machine", default="", metavar="NAME", help="file them under this (default: as they say)")
    parser.add_argument(
        "--commit", metavar="REV", help="what was measured, where a file does not say: NVBench's never do"
    )
    parser.add_argument("--results", type=folder, metavar="DIR", help="where records are (default: results/)")


def run(arguments: argparse.Namespace) -> int:
    results = arguments.results or find_project(arguments.project).results
    check_writable(results)
    measured = _commit(arguments.project, arguments.commit) if arguments.commit else NO_COMMIT
    status = 0
    for path in arguments.files:
        try:
            for filed in import_file(path, results, arguments.machine, measured):
                print(_line(path, filed), flush=True)
        except (NotResults, OSError) as error:
            said = error if isinstance(error, NotResults) else f"{path} cannot be read: {error.strerror}; name a file"
            print(f"groundspeed: {said}", file=sys.stderr)
            status = BAD
    return status


def _commit(project: Path | None, revision: str) -> Commit:
    """The commit that a revision names, in the checkout given, else the one around the current folder.

    A full hash of another repository's is taken as it is, without a time.
    """
    root = find_project(project).root if project else Path.cwd()
    found = commit(root, f"{revision}^{{commit}}")
    if found is not NO_COMMIT:
        return found
    if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", revision):
        return Commit(revision, "")
    raise UserError(f"--commit {revision}: git knows no such revision in {root}: expected one, or a full hash")


def _line(path: Path, filed: Filed) -> str:
    if filed.known:
        return f"{path}: imported before, nothing added: {filed.folder}"
    rows = [row for record in filed.records for row in record.measurements]
    cold = any("device_cold" in row.samples for row in rows)
    machine, run_id = filed.folder.parent.parent.name, filed.folder.name
    table = f"groundspeed table --machine {machine} --run {run_id}{'' if cold else ' --quantity call'}"
    names = ", ".join(record.header.operator for record in filed.records)
    return f"{path}: {len(rows)} results of {names}; type: {table}"
