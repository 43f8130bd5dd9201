"""Judge a change: base and head side by side on one device, in fresh processes that run both.

groundspeed gate --base main               what the worktree changes since then
groundspeed gate --base main --head topic  the same of a branch
groundspeed gate --base main --list        what would be measured, and why
groundspeed gate --aa --all --save-noise   a revision with itself: noise floors
groundspeed gate --base main --fleet auto  an operator a GPU of a Ray cluster

Exit status: 0 pass, 1 regressed (or broken, or removed), 2 could not measure or wrong use.
Policy: [tool.groundspeed.gate] of base's pyproject.toml. docs/gating.md tells the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from groundspeed.errors import OutputLost, UserError
from groundspeed.fleet import options as fleet_options
from groundspeed.gate import annotations as ci
from groundspeed.gate import junit, markdown, terminal
from groundspeed.gate.assemble import unmatched
from groundspeed.gate.config import Config, parse_duration, parse_threshold
from groundspeed.gate.floors import noise_folder, read_floors, write_noise
from groundspeed.gate.git import WORKTREE, NoCommit
from groundspeed.gate.paired import MeasurePairs, PairRequest
from groundspeed.gate.plain import plain
from groundspeed.gate.plan import Scope
from groundspeed.gate.policy import policy_in_force
from groundspeed.gate.report import Report, encode, read_report, schema
from groundspeed.gate.session import Finished, Request, Where, could_not_measure, plan_of, run_gate
from groundspeed.gate.versions import Revisions, find_revisions, unpacked
from groundspeed.machine import chosen_device, machine_name, measuring_device
from groundspeed.operator import TIERS
from groundspeed.project import Project, find_project
from groundspeed.report.style import Style
from groundspeed.report.units import counted
from groundspeed.selection import Selection
from groundspeed.whole_files import replace_output

COULD_NOT_MEASURE = 2
KEPT = "what was judged is kept: type it again to go on"  # of interrupted runs of many gates: soaks and trials


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="REV", help="compare with where head left this revision")
    parser.add_argument("--head", metavar="REV", default=WORKTREE, help="a revision, or worktree (default)")
    parser.add_argument("--aa", action="store_true", help="compare head with itself, identical code or not")
    what = parser.add_argument_group("what is compared (default: what the change touches)")
    what.add_argument("--all", action="store_true", help="every operator")
    what.add_argument("--only", action="append", default=[], metavar="PATTERN", help="OPERATOR[/IMPLEMENTATION]")
    what.add_argument("--tier", choices=TIERS, help="cases (default: full; small on a CPU)")
    what.add_argument("--dtype", action="append", default=[], metavar="DTYPE")
    what.add_argument("--shape", action="append", default=[], metavar="PATTERN", help="such as 'M=4096,*'")
    what.add_argument("--device", choices=("cuda", "cpu"), help="default: a GPU where there is one")
    what.add_argument("--list", action="store_true", help="say what would be measured and why, and stop")
    policy = parser.add_argument_group("policy (default: base's pyproject.toml)")
    policy.add_argument("--config", type=Path, metavar="FILE", help="a pyproject.toml to take the policy from")
    policy.add_argument("--threshold", action="append", default=[], metavar="METRIC=T", help="device_cold=0.02 is 2 %%")
    policy.add_argument("--budget", metavar="TIME", help="stop after 90s, 10m, 1h: the rest counts as not measured")
    policy.add_argument("--allow-untouched", action="store_true", help="pass a change that touches nothing measured")
    policy.add_argument("--seed", type=int, default=0, help="of the inputs")
    fleet_options.add(parser)
    out = parser.add_argument_group("reports")
    out.add_argument("--markdown", type=Path, metavar="FILE", help="for a job summary or a comment")
    out.add_argument("--junit", type=Path, metavar="FILE")
    out.add_argument("--json", type=Path, metavar="FILE", help="schema: --schema")
    out.add_argument("--gitlab", type=Path, metavar="FILE", help="GitLab code quality artifact")
    out.add_argument("--github", action="store_true", help="print annotations for GitHub Actions")
    out.add_argument("--save-noise", action="store_true", help="with --aa: add to this machine's noise floors")
    out.add_argument("--report", type=Path, metavar="FILE", help="render this stored --json report, measure nothing")
    out.add_argument("--schema", action="store_true", help="print the JSON Schema of --json, and stop")


def run(args: argparse.Namespace) -> int:
    fleet_options.check(args)
    measures = not (args.schema or args.report or args.list)
    if args.fleet and measures:
        return _run_on_fleet(args)
    if measures:
        measuring_device(args.device)
    with one_engine(engine) as found:
        return run_with(args, found)


def _run_on_fleet(args: argparse.Namespace) -> int:
    from groundspeed.gate.on_fleet import on_fleet

    with contextlib.ExitStack() as held:
        try:
            where, connection = held.enter_context(on_fleet(args))
        except UserError:
            raise
        except Exception:  # nor may a fault of the fleet's read as a regression
            traceback.print_exc()
            print("groundspeed: the fleet could not be used", file=sys.stderr)
            return COULD_NOT_MEASURE
        status = run_with(args, _no_engine, where)
    return connection.leave(status)


def run_with(args: argparse.Namespace, find_engine: Callable[[], MeasurePairs], where: Where | None = None) -> int:
    """The command with a given engine, here unless told otherwise.

    Raises UserError for wrong use, before anything is measured.
    """
    if args.schema:
        sys.stdout.write(schema().decode())
        return 0
    if args.report is not None:
        return _reported(args, read_report(args.report))
    if args.save_noise and not args.aa:
        raise UserError("--save-noise goes with --aa: only identical sides show the noise")
    project = find_project(args.project)
    revisions = None
    try:
        revisions = find_revisions(project.root, args.base, args.head, args.aa)
        where = where or _here(args)
        request = _request(args, project, revisions, where)
        if args.list:
            return _list(request)
        finished = run_gate(request, find_engine(), _progress, where.spread)
    except NoCommit as error:
        report = could_not_measure(revisions, str(error))
        print(plain(f"groundspeed: {error}"), file=sys.stderr)
        _put_out(args, report, [ci.github(report) if args.github else ""])
        return report.exit_status
    except UserError:
        raise
    except Exception as error:  # a fault of the gate's own must never read as a regression (status 1)
        traceback.print_exc()
        finished = Finished(could_not_measure(revisions, f"the gate itself failed: {type(error).__name__}: {error}"))
    noise = ""
    if args.save_noise and finished.noise:
        path = write_noise(noise_folder(project.results, finished.report.machine), now(), finished.noise)
        noise = f"noise of {len(finished.noise)} series: {path}\n"
    return _reported(args, finished.report, noise)


def now() -> str:
    """The name of a run that ends now."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _reported(args: argparse.Namespace, report: Report, noise: str = "") -> int:
    """Write every output. The report's exit status, or 2 where one fails by a fault of the gate's own.

    Raises UserError when a file cannot be written, and OutputLost when nobody reads what is shown.
    """
    try:
        table = f"{terminal.render(report, Style.of())}\n"
        _put_out(args, report, [table, ci.github(report) if args.github else "", noise])
    except (UserError, OutputLost, OSError):
        raise
    except Exception:  # nor may this one read as a regression
        traceback.print_exc()
        print("groundspeed: the report could not be shown", file=sys.stderr)
        return COULD_NOT_MEASURE
    return report.exit_status


def _put_out(args: argparse.Namespace, report: Report, texts: Iterable[str]) -> None:
    """The files, and then what is shown, whose reader may go away.

    Raises OutputLost when it has, and UserError when a file could not be written, after all else.
    """
    problems = _write_files(args, report)
    _show(report, texts)
    if problems:
        raise UserError("; ".join(problems))


def _show(report: Report, texts: Iterable[str]) -> None:
    """Write to standard output. Raises OutputLost when its reader has gone away."""
    try:
        for text in texts:
            sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as gone:
        raise OutputLost(report.exit_status) from gone


def _write_files(args: argparse.Namespace, report: Report) -> list[str]:
    """The files that were asked for; returns why some of them could not be written."""
    outputs: list[tuple[Path | None, Callable[[], bytes]]] = [
        (args.markdown, lambda: markdown.render(report).encode()),
        (args.junit, lambda: junit.render(report)),
        (args.json, lambda: encode(report)),
        (args.gitlab, lambda: ci.gitlab(report)),
    ]
    problems = []
    for path, render in outputs:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_output(path, render())
        except OSError as error:
            problems.append(f"{path} cannot be written: {error.strerror}")
    return problems


def _here(args: argparse.Namespace) -> Where:
    if args.fleet and not args.list:
        raise UserError("--fleet is for groundspeed gate itself: soaks and trials measure on this machine")
    device = args.device or chosen_device()
    return Where(device, machine_name(device))


def _no_engine() -> MeasurePairs:
    """Of a fleet every station has one."""

    def measure(request: PairRequest) -> NoReturn:
        raise AssertionError(f"{request.operator} must be measured on the fleet")

    return measure


def _request(args: argparse.Namespace, project: Project, revisions: Revisions, where: Where) -> Request:
    device, machine = where.device, where.machine
    config, remarks = policy_in_force(project.root, revisions, args.config)
    config = _typed_policy(args, config)
    tier = args.tier or config.tier or ("small" if device == "cpu" else "full")
    return Request(
        project=project.root,
        revisions=revisions,
        scope=Scope(
            Selection(dtypes=tuple(args.dtype), tier=tier, shapes=tuple(args.shape)),
            everything=args.all,
            only=tuple(args.only),
            force=args.aa,
        ),
        device=device,
        machine=machine,
        floors=read_floors(noise_folder(project.results, machine)),
        config=config,
        remarks=remarks,
        seed=args.seed,
    )


def _typed_policy(args: argparse.Namespace, config: Config) -> Config:
    """The policy with what the command line changes of it."""
    if args.budget is not None:
        config = replace(config, budget_seconds=parse_duration(args.budget, "--budget"))
    if args.allow_untouched:
        config = replace(config, untouched="pass")
    typed = dict(parse_threshold(text) for text in args.threshold)
    return replace(config, thresholds={**(config.thresholds or {}), **typed}) if typed else config


def _list(request: Request) -> int:
    """Print what would be measured; status 0 when there is something, 2 when there is nothing."""
    with unpacked(request.project, request.revisions) as versions:
        plan = plan_of(versions, request.scope, request.config)
    for planned in plan.pairs:
        cases = len(planned.pair.cases)
        print(_columns(f"{planned.operator}/{planned.pair.name}", counted(cases, "case"), planned.why))
    for gone in plan.vanished:
        print(_columns(f"{gone.operator}/{gone.implementation}", "removed", f"{gone.dtype} {gone.shape} {gone.reason}"))
    for entry in (*plan.broken, *plan.unmeasured):
        print(_columns(entry.operator, "broken", entry.reason))
    for remark in plan.remarks:
        print(plain(f"note: {remark}"))
    if plan.unmatched and not plan.pairs:
        print(plain(f"note: {unmatched(plan, request.scope.selection)}"))
    pairs, identical = counted(len(plan.pairs), "implementation"), counted(plan.identical, "case")
    print(f"{pairs} to measure, {identical} identical in code")
    return 0 if plan.pairs or plan.vanished or plan.broken or plan.unmeasured else COULD_NOT_MEASURE


def _columns(*cells: str) -> str:
    return "  ".join(plain(cell) for cell in cells)


def _progress(line: str) -> None:
    print(line[: len(line) - len(line.lstrip())] + plain(line), file=sys.stderr, flush=True)


def engine() -> MeasurePairs:
    """The engine that measures on this machine."""
    from groundspeed.measure.paired import PairedEngine

    found: MeasurePairs = PairedEngine(_progress)
    return found


@contextlib.contextmanager
def one_engine(find_engine: Callable[[], MeasurePairs]) -> Iterator[Callable[[], MeasurePairs]]:
    """The same engine for everybody who asks, found when the first does, and ended at the end."""
    found = functools.cache(find_engine)
    try:
        yield found
    finally:
        close = getattr(found(), "close", None) if found.cache_info().currsize else None
        if close is not None:
            close()
