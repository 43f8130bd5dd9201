"""How findings are worded, the same in every output: values, ratios, and the order of importance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.metrics import METRICS
from groundspeed.gate.report import STATUS, Finding, Report, Step, Unmeasured
from groundspeed.report.units import counted, duration, significant, size

ORDER = (
    Verdict.REGRESSED,
    Verdict.BROKEN,
    Verdict.REMOVED,
    Verdict.AMBIGUOUS,
    Verdict.IMPROVED,
    Verdict.FIXED,
    Verdict.NEW,
    Verdict.INCOMPARABLE,
    Verdict.UNCHANGED,
)
MARKS = {
    Verdict.REGRESSED: "✗",
    Verdict.BROKEN: "✗",
    Verdict.REMOVED: "✗",
    Verdict.AMBIGUOUS: "?",
    Verdict.IMPROVED: "✓",
    Verdict.FIXED: "✓",
    Verdict.NEW: "+",
    Verdict.INCOMPARABLE: "–",
    Verdict.UNCHANGED: "=",
}


@dataclass(frozen=True)
class SeriesSummary:
    """What became of all findings of one implementation. ``largest`` is the finding furthest from a ratio of 1."""

    series: str
    counts: dict[Verdict, int]
    largest: Finding | None


def by_importance(findings: Iterable[Finding]) -> list[Finding]:
    """Failing ones first, then by verdict, then the largest change."""
    return sorted(findings, key=lambda f: (not f.fails, ORDER.index(f.verdict), -_distance(f), f.series, f.case))


def noteworthy(report: Report) -> list[Finding]:
    """All but the unchanged ones and the plain new ones, in order of importance."""
    quiet = (Verdict.UNCHANGED, Verdict.NEW)
    return by_importance(finding for finding in report.findings if finding.verdict not in quiet)


def summarise(findings: Sequence[Finding]) -> list[SeriesSummary]:
    """One summary an implementation, in order of appearance."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.series, []).append(finding)
    return [_summary(series, members) for series, members in groups.items()]


def value(number: float | None, unit: str) -> str:
    if number is None:
        return "–"
    if unit == "ns":
        return duration(number)
    if unit == "bytes":
        return size(round(number))
    return f"{number:.2e}" if number and abs(number) < 1e-3 else significant(number)


def change(ratio: float | None) -> str:
    """``+3.2 %`` for 1.032, ``-0.14 %`` for 0.9986; a change of more than tenfold as a factor."""
    if ratio is None:
        return "–"
    return f"{significant(ratio)}×" if ratio >= 10 else f"{_percent(ratio)} %"


def interval(low: float | None, high: float | None) -> str:
    """``[+2.9, +3.4] %``, or nothing where there is none."""
    if low is None or high is None or high >= 10:
        return ""
    return f"[{_percent(low)}, {_percent(high)}] %"


def probability(number: float | None) -> str:
    """A p or q to two significant digits, or nothing where there is none."""
    return "" if number is None else f"{number:.2g}"


def _percent(ratio: float) -> str:
    """Two decimals below one per cent, where noise lives; one above."""
    value = (ratio - 1) * 100
    return f"{value:+.{2 if abs(value) < 0.995 else 1}f}"


def metric_label(name: str) -> str:
    return "" if name == STATUS else METRICS[name].label if name in METRICS else name


def evidence(finding: Finding) -> str:
    """Base, head, change, interval, threshold, processes, p and q in one line; the reason alone for a status."""
    if finding.ratio is None and finding.base is None:
        return finding.reason
    unit = finding.unit
    parts = [
        f"{value(finding.base, unit)} → {value(finding.head, unit)}",
        f"{change(finding.ratio)} {interval(finding.low, finding.high)}".strip(),
        f"T {finding.threshold * 100:g} %" if finding.threshold is not None else "",
        counted(finding.processes, "process", "processes"),
        f"p={probability(finding.p)}" if finding.p is not None else "",
        f"q={probability(finding.q)}" if finding.q is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def notes(finding: Finding) -> list[str]:
    """Reason, cause, rename, acceptance: a line each."""
    found = []
    if finding.reason and evidence(finding) != finding.reason:
        found.append(finding.reason)
    if finding.cause:
        found.append(f"cause: {finding.cause}")
    if finding.base_implementation:
        found.append(f"called {finding.base_implementation} in base")
    if finding.report_only:
        found.append("report only: never fails")
    if finding.accepted:
        found.append(f"accepted: {finding.accepted}")
    return found


def by_reason(unmeasured: Iterable[Unmeasured]) -> dict[str, list[str]]:
    """What could not be measured, under why: one lost GPU must not fill a page."""
    found: dict[str, list[str]] = {}
    for entry in unmeasured:
        series = "/".join(part for part in (entry.operator, entry.implementation) if part)
        found.setdefault(entry.reason, []).append(f"{series} {entry.case}".strip())
    return found


def title(report: Report) -> str:
    mode = "A/A " if report.aa else ""
    return f"{mode}gate: {report.result}: {report.summary}"


def _summary(series: str, members: list[Finding]) -> SeriesSummary:
    counts: dict[Verdict, int] = {}
    for finding in members:
        counts[finding.verdict] = counts.get(finding.verdict, 0) + 1
    measured = [finding for finding in members if finding.ratio is not None]
    return SeriesSummary(series, counts, max(measured, key=_distance, default=None))


def _distance(finding: Finding) -> float:
    return abs(finding.ratio - 1) if finding.ratio is not None else 0.0


def spent(wall: float, phases: Mapping[str, float]) -> str:
    """``4.1 s (prepare 1.2, check 0.9)``: the phases that took a tenth of a second or more, the longest first."""
    told = sorted(((value, name) for name, value in phases.items() if value >= 0.1), reverse=True)
    listed = ", ".join(f"{name} {value:.1f}" for value, name in told)
    return f"{wall:.1f} s ({listed})" if listed else f"{wall:.1f} s"


def cost(report: Report) -> str:
    """What the run cost, all of it and by step."""
    steps = [f"{_processes(step)} {spent(step.seconds, step.phases)}" for step in report.steps]
    return f"took {report.seconds:.1f} s: {'; '.join(steps)}"


def _processes(step: Step) -> str:
    fresh = "fresh " if step.step == "fresh" else ""
    return counted(step.processes, f"{fresh}process", f"{fresh}processes")
