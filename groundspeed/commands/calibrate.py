"""Say how well this machine can be measured: what our timers read of a dozen probes in fresh processes, and how it
scatters; other timers beside them; costs, ceilings, and the noise floor of identical code.

groundspeed calibrate                     12 processes; some minutes on a GPU
groundspeed calibrate --only relu_64KiB   one probe, or a pattern
groundspeed calibrate --stored            show the newest again
groundspeed calibrate --markdown          write it into docs/measuring.md

It keeps results/<machine>/calibration/<run id>.json.gz, and the noise floors where the gate reads them. Exit status: 0
what must hold holds or cannot be judged here, 1 something does not hold, 2 wrong use or nothing measured.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.locations.place import folder
from groundspeed.project import Project, find_project, near, shown
from groundspeed.whole_files import replace_output

if TYPE_CHECKING:
    from groundspeed.calibrate.probes import Probe
    from groundspeed.calibrate.schema import Calibration

PAGE = "docs/measuring.md"
PAGE_MACHINE = "nvidia-h200"
PROCESSES, BESIDE = 12, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, metavar="N", help=f"fresh processes (default: {PROCESSES})")
    parser.add_argument(
        "--beside", type=int, metavar="N", help=f"of which so many time by other methods too (default: {BESIDE})"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PROBE", help="narrow to this probe or pattern")
    parser.add_argument("--results", type=folder, metavar="DIR", help="where it is kept (default: results/)")
    parser.add_argument("--stored", action="store_true", help="show the newest of this machine, measure nothing")
    parser.add_argument("--machine", metavar="NAME", help="with --stored: of this machine")
    parser.add_argument("--markdown", action="store_true", help=f"write {PAGE} from the newest of {PAGE_MACHINE}")
    parser.add_argument("--check", action="store_true", help="with --markdown: write nothing, exit 1 when it is stale")


def run(arguments: argparse.Namespace) -> int:
    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    _check_options(arguments)
    if arguments.markdown:
        return _markdown(project, results, check=arguments.check)
    if arguments.stored:
        return _show(_stored(results, arguments.machine))
    return _measure(arguments, project, results)


def _check_options(arguments: argparse.Namespace) -> None:
    """What would be ignored is refused."""
    if arguments.check and not arguments.markdown:
        raise UserError("--check goes with --markdown; type: groundspeed calibrate --markdown --check")
    if arguments.machine and not arguments.stored:
        raise UserError("--machine goes with --stored: what is measured is this machine")
    if arguments.markdown and arguments.stored:
        raise UserError("--markdown writes a page and --stored shows the newest: type one of them")
    if not (arguments.markdown or arguments.stored):
        return
    which = "--markdown" if arguments.markdown else "--stored"
    measuring = {
        "--only": bool(arguments.only),
        "--processes": arguments.processes is not None,
        "--beside": arguments.beside is not None,
    }
    if given := [name for name, typed in measuring.items() if typed]:
        raise UserError(
            f"{' and '.join(given)}: for measuring, and {which} measures nothing; leave out one or the other"
        )


def _measure(arguments: argparse.Namespace, project: Project, results: Path) -> int:
    from groundspeed.calibrate.run import Request, Told, calibrate, keep
    from groundspeed.machine import chosen_device, machine_name
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.lane import default_place, hold
    from groundspeed.writable import check_writable

    processes = PROCESSES if arguments.processes is None else arguments.processes
    beside = BESIDE if arguments.beside is None else arguments.beside
    if processes < 1 or beside < 0:
        raise UserError("--processes: expected at least 1; --beside: expected at least 0")
    check_writable(results)
    device = chosen_device()
    probes = _chosen(arguments.only, device)
    place = default_place(device)
    request = Request(
        project.root,
        machine_name(device),
        device,
        probes,
        processes,
        beside,
        variables=place.variables,
    )
    told = Told(
        process=lambda number: _say(f"process {number + 1} of {request.processes}: {len(probes)} probes on {device}"),
        ncu=lambda: _say("Nsight Compute"),
    )
    with hold(place, Patience(), _say):
        calibration = calibrate(request, told)
    kept = keep(results, calibration)
    status = _show(calibration)
    for path in kept.values():
        print(f"Kept     {shown(path)}")
    return status


def _chosen(patterns: list[str], device: str) -> tuple[Probe, ...]:
    from groundspeed.calibrate.probes import probes_of

    known = probes_of(device)
    names = [probe.name for probe in known]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UserError(f"no probe matches {pattern!r}{near(pattern, names)}")
    return tuple(probe for probe in known if not patterns or any(fnmatch.fnmatch(probe.name, p) for p in patterns))


def _stored(results: Path, machine: str | None) -> Calibration:
    from groundspeed.calibrate.schema import calibrated_machines, newest, read_calibration
    from groundspeed.machine import machine_name

    name = machine or machine_name()
    path = newest(results, name)
    if path is None:
        there = ", ".join(calibrated_machines(results))
        advice = f": there are those of {there}; pass --machine NAME" if there else "; type: groundspeed calibrate"
        raise UserError(f"no calibration of {name} under {results}{advice}")
    return read_calibration(path)


def _show(calibration: Calibration) -> int:
    from groundspeed.calibrate.report import terminal
    from groundspeed.calibrate.summary import verdicts
    from groundspeed.report.style import Style

    print(terminal(calibration, Style.of().width))
    sys.stdout.flush()
    return 1 if any(one.held is False for one in verdicts(calibration)) else 0


def _markdown(project: Project, results: Path, check: bool) -> int:
    from groundspeed.calibrate.report import markdown, replace_calibration
    from groundspeed.calibrate.schema import newest, read_calibration

    path = project.root / PAGE
    if not path.is_file():
        raise UserError(f"{path} is not there: the page that the calibration is written into")
    stored = newest(results, PAGE_MACHINE)
    text = markdown(read_calibration(stored) if stored else None, PAGE_MACHINE)
    before = path.read_text(encoding="utf-8")
    after = replace_calibration(before, text, PAGE)
    if after == before:
        print(f"{PAGE}: the calibration is up to date")
        return 0
    folder = shown(results / PAGE_MACHINE)
    if stored is None:
        raise UserError(f"{PAGE} is left as it is: {folder} holds no calibration; pass --results DIR")
    if check:
        print(f"groundspeed: {PAGE}: the calibration is stale; type: groundspeed calibrate --markdown", file=sys.stderr)
        return 1
    replace_output(path, after.encode())
    print(f"{PAGE}: calibration written from {folder}")
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
