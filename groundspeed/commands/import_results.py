"""Add results of pytest-benchmark or NVBench to the stored ones, as records that every command reads.

groundspeed import .benchmarks/*/*.json            pytest-benchmark's
groundspeed import softmax.json --machine old-lab  NVBench's --json or --jsonbin

A file that was imported before adds nothing. asv's files need no import: the dashboard and compare read them.

Exit status: 0 all imported, 2 at least one file could not be; the others are.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from groundspeed.analysis.foreign import NotResults
from groundspeed.importing.filing import Filed, import_file
from groundspeed.locations.place import folder
from groundspeed.project import find_project

BAD = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON of pytest-benchmark or NVBench")
    parser.add_argument("--machine", default="", metavar="NAME", help="file them under this (default: as they say)")
    parser.add_argument("--results", type=folder, metavar="DIR", help="where records are (default: results/)")


def run(arguments: argparse.Namespace) -> int:
    results = arguments.results or find_project(arguments.project).results
    status = 0
    for path in arguments.files:
        try:
            for filed in import_file(path, results, arguments.machine):
                print(_line(path, filed), flush=True)
        except (NotResults, OSError) as error:
            said = error if isinstance(error, NotResults) else f"{path}: {error.strerror}"
            print(f"groundspeed: {said}", file=sys.stderr)
            status = BAD
    return status


def _line(path: Path, filed: Filed) -> str:
    if filed.known:
        return f"{path}: imported before, nothing added: {filed.folder}"
    rows = [row for record in filed.records for row in record.measurements]
    cold = any("device_cold" in row.samples for row in rows)
    machine, run_id = filed.folder.parent.parent.name, filed.folder.name
    table = f"groundspeed table --machine {machine} --run {run_id}{'' if cold else ' --quantity call'}"
    names = ", ".join(record.header.operator for record in filed.records)
    return f"{path}: {len(rows)} results of {names}; type: {table}"
