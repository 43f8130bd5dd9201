"""Put the shards of one run together, so that its records read as if nobody had cut it.

  groundspeed run --shard 1/3 --results shard-1    2/3 and 3/3 elsewhere
  groundspeed merge shard-1 shard-2 shard-3 --into results

Each SHARD is a results folder, or any folder above or inside one. Nothing is written unless all fits: a shard that is
missing or there twice, one of another commit, machine or selection, and an operator without a record end with one
line and status 2. Merging again adds nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from groundspeed.project import command, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shard", nargs="+", type=Path, metavar="SHARD", help="a folder with what a shard measured")
    parser.add_argument("--into", type=Path, required=True, metavar="RESULTS", help="the results folder to add to")
    parser.add_argument("--partial", action="store_true", help="merge what there is, and name what is missing")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed.fleet.merging import find_shards, merge
    from groundspeed.report.ending import time_split
    from groundspeed.report.style import Style
    from groundspeed.writable import check_writable

    into: Path = arguments.into
    check_writable(into.resolve())
    found = [shard for path in arguments.shard for shard in find_shards(path)]
    merged = merge(found, into, arguments.partial)
    for line in (*merged.missing, *merged.remarks):
        print(f"groundspeed: {line}", file=sys.stderr)
    for shard in sorted(merged.shards, key=lambda shard: shard.cut.index):
        spent = sum(
            record.footer.seconds.get("total", 0.0)
            for record in merged.records
            if record.header.operator in shard.cut.operators
        )
        print(f"shard {shard.cut.label}  {len(shard.cut.operators)} operators  {spent:.1f} s  {shard.run_id}")
    print("\n".join(time_split(merged.records, Style.of())))
    already = len(merged.records) - merged.added
    more = f", {already} were there already" if already else ""
    print(f"Results  {shown(merged.folder)}/ ({merged.added} records added{more})")
    print(f"Again    {command()} table --results {shown(into)}")
    return 0
