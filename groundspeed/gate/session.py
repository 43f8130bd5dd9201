"""One gate run from revisions to report."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from groundspeed.gate.accepted import Accepted, from_file, from_trailers
from groundspeed.gate.assemble import Assembled, assemble, result_of
from groundspeed.gate.config import Config
from groundspeed.gate.evidence import Evidence, Judging, Measuring, Mixed, Progress
from groundspeed.gate.floors import NoiseLine, SeriesKey
from groundspeed.gate.git import TRAILER, WORKTREE
from groundspeed.gate.metrics import Method
from groundspeed.gate.operators import operator_verdicts
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.plan import Diff, Plan, Scope, make_plan
from groundspeed.gate.report import Report
from groundspeed.gate.series import log_ratios, presence
from groundspeed.gate.statuses import case_status
from groundspeed.gate.versions import Revisions, Versions, read_at, unpacked
from groundspeed.machine import chosen_device
from groundspeed.report.units import counted


@dataclass(frozen=True)
class Request:
    """Everything a gate run depends on, but the engine. ``remarks`` go into the report."""

    project: Path
    revisions: Revisions
    scope: Scope
    device: str
    machine: str
    floors: Mapping[SeriesKey, float]
    config: Config
    remarks: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Finished:
    """The report, and for A/A runs what the noise floors are made of."""

    report: Report
    noise: tuple[NoiseLine, ...] = ()


class Spread(Protocol):
    """Measures a plan on other machines. ``remarks``, which measuring may add to, go into the report."""

    remarks: list[str]

    def __call__(self, plan: Plan, versions: Versions, judging: Judging, seed: int) -> Evidence:
        """Each operator's processes on one device. Raises Mixed."""


@dataclass(frozen=True)
class Where:
    """What is measured on: device, the machine its results are filed under, and how it is spread if it is."""

    device: str
    machine: str
    spread: Spread | None = None


def run_gate(request: Request, measure: MeasurePairs, progress: Progress, spread: Spread | None = None) -> Finished:
    """Compare, judge and report; measure by ``measure`` here, or by ``spread`` where that is given.

    Raises UserError for what the user can mend before anything can be measured.
    """
    began = time.monotonic()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    config = request.config
    with unpacked(request.project, request.revisions) as versions:
        plan = plan_of(versions, request.scope, config)
        accepted, more = _accepted(request, versions, config)
        judging = Judging(config, request.device, dict(request.floors))
        measuring = Measuring(measure, versions.head, judging, request.seed, progress)
        mixed = ""
        try:
            if spread is None:
                measuring.run(plan)
            else:
                measuring.evidence = spread(plan, versions, judging, request.seed)
        except Mixed as error:
            mixed = str(error)
    evidence = measuring.evidence
    body = Assembled() if mixed else assemble(plan, evidence, judging, accepted, _command(request))
    body.remarks = [*request.remarks, *more, *body.remarks, *(spread.remarks if spread else ())]
    report = _report(request, plan, body, evidence, mixed)
    report = msgspec.structs.replace(report, started=started, seconds=round(time.monotonic() - began, 1))
    return Finished(report, _noise(plan, evidence, judging) if request.revisions.aa and not mixed else ())


def plan_of(versions: Versions, scope: Scope, config: Config) -> Plan:
    return make_plan(versions.head, versions.base, Diff.of(versions.changes, config.harness), scope, config)


def could_not_measure(revisions: Revisions | None, reason: str) -> Report:
    """The report of a run that ended before it could compare anything."""
    known = revisions or Revisions("", "", "", "")
    return Report(
        result="could not measure",
        summary=reason,
        base=known.base,
        head=known.head,
        base_label=known.base_label,
        head_label=known.head_label,
        aa=known.aa,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _command(request: Request) -> list[str]:
    """What to type to compare the same two versions again."""
    revisions = request.revisions
    words = ["groundspeed", "gate", *(["--aa"] if revisions.aa else ["--base", revisions.base])]
    if revisions.head != WORKTREE:
        words += ["--head", revisions.head]
    if request.device == "cpu" and chosen_device() != "cpu":  # there the command would judge the GPU
        words += ["--device", "cpu"]
    if request.scope.selection.tier != "full":
        words += ["--tier", request.scope.selection.tier]
    return [*words, *(["--all"] if request.scope.everything else [])]


def _accepted(request: Request, versions: Versions, config: Config) -> tuple[list[Accepted], list[str]]:
    accepted, remarks = from_trailers(versions.trailers)
    if not config.accept_trailers:
        ignored = counted(len(accepted), f"{TRAILER} trailer")
        remarks = [f"{ignored} ignored: accept_trailers is false"] if accepted else []
        accepted = []
    text = read_at(request.project, request.revisions.head, config.allow_list)
    if text is not None:
        listed, more = from_file(text, config.allow_list, datetime.date.today())
        accepted += listed
        remarks += more
    return accepted, remarks


def _report(request: Request, plan: Plan, body: Assembled, evidence: Evidence, mixed: str) -> Report:
    result, summary = result_of(body, plan, request.config.untouched == "pass", request.scope.selection)
    if mixed:
        result, summary = "could not measure", f"results of two runners were mixed: {mixed}"
    runner = evidence.runner
    return Report(
        result=result,
        summary=summary,
        base=request.revisions.base,
        head=request.revisions.head,
        base_label=request.revisions.base_label,
        head_label=request.revisions.head_label,
        aa=request.revisions.aa,
        machine=runner.machine if runner else request.machine,
        device=runner.environment.device_name if runner else "",
        steps=list(evidence.steps.values()),
        compared=body.compared,
        identical=plan.identical,
        not_applicable=body.not_applicable,
        touched=list(plan.touched),
        operators=operator_verdicts(body.findings, body.unmeasured),
        findings=body.findings,
        unmeasured=body.unmeasured,
        remarks=body.remarks,
    )


def _noise(plan: Plan, evidence: Evidence, judging: Judging) -> tuple[NoiseLine, ...]:
    """The A/A log-ratios of step 1 of every series that is judged on process medians."""
    lines = []
    metrics = [metric for metric in judging.metrics if metric.method is Method.PAIRED]
    for planned in plan.pairs:
        for case in planned.pair.cases:
            outcomes = evidence.first.get((planned.operator, planned.pair.name, case), [])
            if not outcomes or case_status(outcomes, planned.is_new).verdict is not None:
                continue
            for metric in metrics:
                if all(presence(metric, outcomes)):
                    ratios = log_ratios(metric, outcomes)
                    where = planned.operator, planned.pair.name, case.dtype, case.shape_label, metric.name
                    lines.append(NoiseLine(*where, ratios))
    return tuple(lines)
