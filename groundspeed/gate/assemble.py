"""From plan and evidence to the report: every case of the inventory ends as a finding or as not measured."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from groundspeed.analysis.rule import Verdict
from groundspeed.analysis.significance import benjamini_hochberg
from groundspeed.gate.accepted import Accepted
from groundspeed.gate.cause import likely_cause
from groundspeed.gate.evidence import CaseKey, Evidence, Judging
from groundspeed.gate.metrics import Metric
from groundspeed.gate.paired import PairOutcome
from groundspeed.gate.plan import Plan, PlannedPair
from groundspeed.gate.report import STATUS, Finding, Result, Unmeasured
from groundspeed.gate.series import Series, judge_series, presence, too_few
from groundspeed.gate.statuses import case_status
from groundspeed.operator import Case
from groundspeed.report.units import counted
from groundspeed.selection import Selection

MOST_REASONS = 8
MOST_LABELS = 4


@dataclass
class Assembled:
    """Findings, what was not measured, and counts: the body of a report."""

    findings: list[Finding] = field(default_factory=list)
    unmeasured: list[Unmeasured] = field(default_factory=list)
    compared: int = 0
    not_applicable: int = 0
    remarks: list[str] = field(default_factory=list)
    scattered: set[int] = field(default_factory=set)  # indices of the findings whose processes disagree


def assemble(
    plan: Plan, evidence: Evidence, judging: Judging, accepted: Sequence[Accepted], command: Sequence[str]
) -> Assembled:
    """Judge everything in the plan. ``command`` is the gate's own, to which a finding adds what it needs."""
    body = Assembled(unmeasured=list(plan.unmeasured), remarks=list(plan.remarks))
    _add_vanished(body, plan, judging)
    reasons: dict[str, int] = {}
    for planned in plan.pairs:
        for case in planned.pair.cases:
            _add_case(body, planned, case, evidence, judging, reasons)
    body.remarks += _not_applicable(reasons)
    body.findings = [_completed(finding, accepted, command) for finding in _with_q(body.findings)]
    body.findings = [_settled(f, command) if i in body.scattered else f for i, f in enumerate(body.findings)]
    _drop_accepted(body, accepted)
    return body


def _not_applicable(reasons: dict[str, int]) -> list[str]:
    """The commonest reasons with their counts; what a device cannot run must not bury what it did."""
    ranked = sorted(reasons.items(), key=lambda item: -item[1])
    lines = [f"{counted(count, 'case')} not applicable: {reason}" for reason, count in ranked[:MOST_REASONS]]
    rest = sum(count for _, count in ranked[MOST_REASONS:])
    return [*lines, f"{counted(rest, 'case')} not applicable for other reasons"] if rest else lines


def unmatched(plan: Plan, selection: Selection) -> str:
    """That no case of the touched operators is selected, with what was asked for and some of what there is."""
    names = ", ".join(name for name, _ in plan.unmatched)
    asked = [f"--dtype {dtype}" for dtype in selection.dtypes] + [f"--shape {shape}" for shape in selection.shapes]
    cases = [case for _, each in plan.unmatched for case in each]
    there = list(dict.fromkeys(case.label if selection.dtypes else case.shape_label for case in cases))
    some = "; ".join(there[:MOST_LABELS]) + ("; ..." if len(there) > MOST_LABELS else "")
    return f"no case of {names} in tier {selection.tier} matches {' '.join(asked)}: there are {some or 'none'}"


def result_of(body: Assembled, plan: Plan, untouched_passes: bool, selection: Selection) -> tuple[Result, str]:
    """The outcome and one sentence on it. Nothing compared is never a pass."""
    failures = [finding for finding in body.findings if finding.fails]
    if failures:
        words = [
            f"{sum(f.verdict == verdict for f in failures)} {verdict}"
            for verdict in (Verdict.REGRESSED, Verdict.BROKEN, Verdict.REMOVED)
            if any(f.verdict == verdict for f in failures)
        ]
        more = f"; {len(body.unmeasured)} could not be measured" if body.unmeasured else ""
        return "regressed", f"{', '.join(words)} of {body.compared} compared{more}"
    if body.unmeasured:
        return "could not measure", f"{len(body.unmeasured)} of what should have been compared could not be measured"
    if plan.unmatched and not plan.pairs and not plan.vanished:
        return "could not measure", f"nothing compared: {unmatched(plan, selection)}"
    if not plan.pairs and not plan.vanished:
        identical = f" ({counted(plan.identical, 'case')} identical in code)" if plan.identical else ""
        text = f"the change touches nothing that is measured{identical}"
        if untouched_passes:
            return "pass", text
        return "could not measure", f"nothing compared: {text}; --all compares all, --allow-untouched passes it"
    neutral = [f for f in body.findings if f.verdict in (Verdict.NEW, Verdict.FIXED) or f.accepted]
    if not body.compared and not neutral:
        return "could not measure", "nothing compared: no case ran on both sides"
    return "pass", _summary(body, plan)


def _summary(body: Assembled, plan: Plan) -> str:
    counts = [f"{body.compared} compared"]
    for verdict in Verdict:
        number = sum(finding.verdict == verdict for finding in body.findings)
        if number and verdict is not Verdict.INCOMPARABLE:
            counts.append(f"{number} {verdict}")
    accepted = sum(bool(finding.accepted) for finding in body.findings)
    if accepted:
        counts.append(f"{accepted} accepted")
    if plan.identical:
        counts.append(f"{counted(plan.identical, 'case')} identical")
    return ", ".join(counts)


def _add_vanished(body: Assembled, plan: Plan, judging: Judging) -> None:
    for gone in plan.vanished:
        body.findings.append(
            Finding(
                operator=gone.operator,
                implementation=gone.implementation,
                metric=STATUS,
                verdict=Verdict.REMOVED,
                dtype=gone.dtype,
                shape=gone.shape,
                reason=gone.reason,
                report_only=judging.config.removed == "report",
            )
        )
    for broken in plan.broken:
        body.findings.append(
            Finding(
                operator=broken.operator,
                implementation=broken.implementation,
                metric=STATUS,
                verdict=Verdict.BROKEN,
                reason=broken.reason,
                file=f"impls/{broken.operator}/spec.py",
            )
        )


def _add_case(
    body: Assembled, planned: PlannedPair, case: Case, evidence: Evidence, judging: Judging, reasons: dict[str, int]
) -> None:
    key = planned.operator, planned.pair.name, case
    first, fresh = evidence.first.get(key, []), evidence.fresh.get(key, [])
    problem = _incomplete(key, evidence, judging)
    if problem:
        body.unmeasured.append(Unmeasured(planned.operator, planned.pair.name, case.label, problem))
        return
    status = case_status([*first, *fresh], planned.is_new)
    if status.verdict is None:
        for metric in judging.metrics:
            _add_metric(
                body, planned, case, judging.series(planned.operator, planned.pair.name, case, metric), key, evidence
            )
        return
    if status.verdict is Verdict.INCOMPARABLE and not status.unmeasured:
        body.not_applicable += 1
        reasons[status.reason] = reasons.get(status.reason, 0) + 1
        return
    body.findings.append(
        _finding(
            planned,
            case,
            STATUS,
            verdict=status.verdict,
            reason=status.reason,
            report_only=status.verdict is Verdict.REMOVED and judging.config.removed == "report",
        )
    )
    if status.unmeasured:
        body.unmeasured.append(Unmeasured(planned.operator, planned.pair.name, case.label, status.reason))


def _incomplete(key: CaseKey, evidence: Evidence, judging: Judging) -> str:
    """Why a case has fewer processes than it must have, or ""."""
    lost = evidence.lost.get(key[0])
    first, wanted = len(evidence.first.get(key, [])), judging.config.processes
    if first < wanted:
        return lost or f"the engine returned {first} of {wanted} processes"
    fresh, wanted = len(evidence.fresh.get(key, [])), judging.config.fresh_processes
    if key in evidence.suspects and fresh < wanted:
        suspects = ", ".join(evidence.suspects[key])
        return f"suspect in {suspects}, and {lost or f'the engine returned {fresh} of {wanted} fresh processes'}"
    return ""


def _add_metric(
    body: Assembled, planned: PlannedPair, case: Case, series: Series, key: CaseKey, evidence: Evidence
) -> None:
    metric = series.metric
    first = evidence.first[key]
    fresh = evidence.fresh.get(key, []) if metric.name in evidence.suspects.get(key, ()) else []
    has_base, has_head = presence(metric, [*first, *fresh])
    missing = too_few(metric, [*first, *fresh])
    if not missing and not has_head and (has_base or metric.name == "device_cold"):
        missing = f"head has no {metric.label}" if has_base else f"neither side has a {metric.label}"
    if missing:
        body.unmeasured.append(Unmeasured(planned.operator, planned.pair.name, case.label, missing))
        return
    if not has_base or not has_head:
        return  # not measured on this device, or not by base: nothing has vanished
    judged = judge_series(series, first, fresh)
    judgement = judged.judgement
    changed = judgement.verdict is not Verdict.UNCHANGED
    body.compared += 1
    if judgement.scattered:
        body.scattered.add(len(body.findings))
    body.findings.append(
        _finding(
            planned,
            case,
            metric.name,
            verdict=judgement.verdict,
            unit=metric.unit,
            threshold=series.threshold,
            base=judged.base,
            head=judged.head,
            ratio=_finite(judgement.ratio),
            low=_finite(judgement.low),
            high=_finite(judgement.high),
            p=judgement.p if metric.quantity or metric.name == "first_call" else None,
            processes=judgement.processes,
            gateable=series.gateable,
            report_only=series.limit.report_only,
            reason=judgement.reason,
            cause=_cause(metric, [*first, *fresh]) if changed else "",
        )
    )


def _finding(planned: PlannedPair, case: Case, metric: str, *, verdict: Verdict, **more: object) -> Finding:
    renamed = planned.base_name if planned.base_name != planned.pair.name else ""
    known = {"base_implementation": renamed, "dtype": case.dtype, "shape": case.shape_label, "file": planned.file}
    fields = {"operator": planned.operator, "implementation": planned.pair.name, "metric": metric, "verdict": verdict}
    return msgspec.convert({**known, **fields, **more}, Finding)


def _cause(metric: Metric, outcomes: Sequence[PairOutcome]) -> str:
    return "" if metric.name == "error" else likely_cause(outcomes)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _with_q(findings: list[Finding]) -> list[Finding]:
    indices = [i for i, finding in enumerate(findings) if finding.p is not None]
    if not indices:
        return findings
    q = benjamini_hochberg(np.array([findings[i].p for i in indices], dtype=float))
    result = list(findings)
    for i, value in zip(indices, q, strict=True):
        result[i] = msgspec.structs.replace(findings[i], q=float(value))
    return result


def _completed(finding: Finding, accepted: Sequence[Accepted], command: Sequence[str]) -> Finding:
    """With who accepted it, where it needs that, and the command that measures it again."""
    by = [
        entry
        for entry in accepted
        if entry.covers(finding.operator, finding.implementation, finding.dtype, finding.metric)
    ]
    needs = finding.verdict in (Verdict.REGRESSED, Verdict.BROKEN, Verdict.REMOVED, Verdict.FIXED)
    text = f"{by[0].reason} ({by[0].source})" if by and needs else ""
    return msgspec.structs.replace(finding, accepted=text, reproduce=reproduce(finding, command))


def _settled(finding: Finding, command: Sequence[str]) -> Finding:
    """With what to type where processes disagree: identical code shows whether the series can be judged at T at all."""
    tier = command.index("--tier") if "--tier" in command else len(command)
    again = reproduce(finding, ["groundspeed", "gate", "--aa", "--save-noise", *command[tier : tier + 2]])
    reason = f"{finding.reason}; type, twice, for its noise floor: {again} (or raise fresh_processes)"
    return msgspec.structs.replace(finding, reason=reason)


def reproduce(finding: Finding, command: Sequence[str]) -> str:
    """The command that measures a finding again, quoted for a shell; "" where nothing can be measured."""
    if finding.verdict is Verdict.REMOVED or not finding.implementation:
        return ""
    words = [*command, "--only", f"{finding.operator}/{finding.implementation}"]
    if finding.dtype:
        words += ["--dtype", finding.dtype, "--shape", finding.shape]
    return shlex.join(words)


def _drop_accepted(body: Assembled, accepted: Sequence[Accepted]) -> None:
    """What could not be measured and was answered for is no longer missing."""
    answered = {(f.operator, f.implementation, f.case) for f in body.findings if f.metric == STATUS and f.accepted}
    kept = []
    for entry in body.unmeasured:
        whole = [a for a in accepted if not entry.case and a.covers(entry.operator, entry.implementation, "", STATUS)]
        if whole:
            body.remarks.append(f"{entry.operator}: {entry.reason}: accepted: {whole[0].reason} ({whole[0].source})")
        elif (entry.operator, entry.implementation, entry.case) not in answered:
            kept.append(entry)
    body.unmeasured = kept
