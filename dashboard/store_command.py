"""``groundspeed store``: examine the stored records, rebuild the cache made of them, delete old ones, move them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.where import checkout_of, results_folder, tell_problems
from groundspeed.errors import UserError
from groundspeed.locations.exchange import Moved
from groundspeed.locations.mirror import pull, push, remove
from groundspeed.locations.place import FORMS, READ_HELP, Location, place
from groundspeed.project import find_project
from groundspeed.writable import check_writable

if TYPE_CHECKING:
    from dashboard.upkeep import Old

FINE, FAULTY = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed store``."""
    parser.description = (
        "Examine the record files under results/ (verify: damaged, copied, from a later groundspeed or a wrong clock); "
        "rebuild the cache that is made of them (compact); delete old ones (prune), which is the only thing that ever "
        "deletes a record, and only with --yes; put what is there somewhere else (push), and fetch what is there "
        "(pull). Pushing never changes a record that is there, and any number of runners may push at once.\n\n"
        "  groundspeed store push git:results\n"
        "  groundspeed store push s3://bucket/prefix\n"
        "  groundspeed dash --results s3://bucket/prefix\n\n"
        "Exit status: 0 done, 1 verify found something or push and pull left something out, 2 wrong use, or the place "
        "cannot be reached."
    )
    parser.add_argument("action", choices=_ACTIONS, metavar="verify|compact|prune|push|pull")
    parser.add_argument("place", nargs="?", type=place, metavar="PLACE", help=f"where to push to, pull from: {FORMS}")
    parser.add_argument("--before", metavar="DATE", help="prune records whose sweep began before this day (UTC)")
    parser.add_argument("--keep", type=int, metavar="N", help="prune all but the newest N of a machine and operator")
    parser.add_argument("--yes", action="store_true", help="prune what would be listed without it")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Do it. Raises UserError for options that do not go with the action, and where there are no results."""
    given = [name for name in ("before", "keep") if getattr(arguments, name) is not None]
    if arguments.action != "prune" and (given or arguments.yes):
        wrong = f"--{given[0]}" if given else "--yes"
        raise UserError(f"{wrong} goes with prune alone; type: groundspeed store prune --help")
    if arguments.action == "prune" and len(given) != 1:
        raise UserError("prune needs --before DATE or --keep N, one of the two")
    if (arguments.place is not None) != (arguments.action in _MOVES):
        wanted = f"expected {FORMS}" if arguments.action in _MOVES else "it goes with push and pull alone"
        raise UserError(f"{arguments.action} {arguments.place or 'names no place'}: {wanted}")
    if arguments.action in _MOVES:
        return _MOVES[arguments.action](arguments)
    results = results_folder(arguments)
    if any(results.glob("records/*/*.jsonl.gz")):
        raise UserError(
            f"{results} is one machine's folder: pass the one above it, --results {results.resolve().parent}"
        )
    return _EXAMINE[arguments.action](arguments, results)


def _verify(arguments: argparse.Namespace, results: Path) -> int:
    from dashboard.upkeep import examine

    count, faults = examine(results, datetime.now(UTC))
    if not count and not faults:
        raise UserError(f"no records under {results}: measure something first (groundspeed run), or pass --results DIR")
    for fault in faults:
        print(f"{fault.file}: {fault.what}{'' if fault.counts else ' (not counted)'}")
    bad = sum(not fault.counts for fault in faults)
    odd = len(faults) - bad
    told = f"{bad} not counted, {odd} odd" if faults else "all whole, each there once"
    print(f"{count} record files under {results}: {told}")
    return FAULTY if faults else FINE


def _compact(arguments: argparse.Namespace, results: Path) -> int:
    from dashboard.upkeep import cache_size, rebuild

    was = cache_size(results)
    store, seconds = rebuild(results)
    shown, now = store.snapshot, cache_size(results)
    rows, files = shown.rows, shown.runs.height
    print(f"{rows} rows of {files} files read in {seconds:.1f} s; the cache had {_size(was)}, now {_size(now)}")
    tell_problems(shown)
    return FINE


def _prune(arguments: argparse.Namespace, results: Path) -> int:
    from dashboard.upkeep import all_but, before

    if arguments.keep is not None:
        if arguments.keep < 1:
            raise UserError(f"--keep {arguments.keep}: expected at least 1")
        old, problems = all_but(results, arguments.keep)
    else:
        old, problems = before(results, _day(arguments.before))
    for problem in problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    listed = sorted(old, key=lambda each: each.path)
    total = _size(sum(each.size for each in listed))
    if not listed:
        print("nothing is that old")
    elif arguments.yes:
        for path in _deleted(arguments, results, listed):
            print(f"deleted {path}", flush=True)
        print(f"{len(listed)} records deleted, {total}; asv's own files are untouched")
    else:
        for each in listed:
            print(f"{each.started:%Y-%m-%d}  {each.path}")
        print(f"{len(listed)} records, {total}: type it again with --yes to delete them")
    return FINE


def _deleted(arguments: argparse.Namespace, results: Path, listed: list[Old]) -> Iterator[Path]:
    """Delete records, of a location there; yields each that is gone."""
    from dashboard.upkeep import delete

    given: Path | Location | None = arguments.results
    if given is None or isinstance(given, Path):
        yield from delete(listed)
    else:
        remove([each.path.relative_to(results).as_posix() for each in listed], given, checkout_of(arguments))
        yield from (each.path for each in listed)


def _push(arguments: argparse.Namespace) -> int:
    results = _own_folder(arguments)
    if not results.is_dir():
        raise UserError(
            f"no results folder {results}: measure something first (groundspeed run), or pass --results DIR"
        )
    return _moved(arguments.place, push(results, arguments.place, checkout_of(arguments)))


def _pull(arguments: argparse.Namespace) -> int:
    results = _own_folder(arguments)
    check_writable(results)
    return _moved(arguments.place, pull(arguments.place, results, checkout_of(arguments)))


def _own_folder(arguments: argparse.Namespace) -> Path:
    given: Path | Location | None = arguments.results
    if given is not None and not isinstance(given, Path):
        raise UserError(
            f"--results {given}: {arguments.action} takes a folder there; the other place is named without it"
        )
    return given or find_project(arguments.project).results


def _moved(place: Path | Location, moved: Moved) -> int:
    for line in moved.refused:
        print(f"groundspeed: {line}", file=sys.stderr)
    print(f"{place}: {moved}")
    return FAULTY if moved.refused else FINE


def _size(count: int) -> str:
    from dashboard.components.numbers import quantity

    return quantity(float(count), "bytes") if count else "0 B"


def _day(text: str) -> datetime:
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"--before {text}: expected a day such as 2026-01-31") from None
    return day if day.tzinfo else day.replace(tzinfo=UTC)


_EXAMINE = {"verify": _verify, "compact": _compact, "prune": _prune}
_MOVES = {"push": _push, "pull": _pull}
_ACTIONS = (*_EXAMINE, *_MOVES)
