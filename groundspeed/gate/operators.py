"""One verdict an operator: the worst of its findings, how many there are of each, and what was not measured.

Every output works it out from the findings: what a stored report says of its operators is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from groundspeed.gate.report import FAILING, Finding, OperatorVerdict, Result, Unmeasured
from groundspeed.gate.words import MARKS, ORDER, by_importance

_FIRST: tuple[Result, ...] = ("regressed", "could not measure", "pass")


def operator_verdicts(findings: Iterable[Finding], unmeasured: Iterable[Unmeasured]) -> list[OperatorVerdict]:
    """Those that fail first, then those that could not be measured, then by the worst finding and by name."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.operator, []).append(finding)
    missing = Counter(entry.operator or "all" for entry in unmeasured)
    names = sorted({*found, *missing})
    verdicts = [_verdict(name, by_importance(found.get(name, ())), missing[name]) for name in names]
    return sorted(verdicts, key=lambda v: (_FIRST.index(v.result), ORDER.index(v.verdict) if v.verdict else 0))


def word(entry: OperatorVerdict) -> str:
    """The verdict with its mark: ``✗ regressed``, ``✗ regressed, excused``, or that it could not be measured."""
    if entry.result == "could not measure" or entry.verdict is None:
        return "✗ could not measure"
    excused = ", excused" if entry.result == "pass" and entry.verdict in FAILING else ""
    return f"{MARKS[entry.verdict]} {entry.verdict}{excused}"


def tally(entry: OperatorVerdict) -> str:
    """``2 regressed, 10 unchanged, 1 accepted or report only, 1 not measured``."""
    parts = [f"{number} {verdict}" for verdict, number in entry.counts.items()]
    parts += [f"{entry.excused} accepted or report only"] if entry.excused else []
    parts += [f"{entry.unmeasured} not measured"] if entry.unmeasured else []
    return ", ".join(parts)


def _verdict(operator: str, findings: list[Finding], unmeasured: int) -> OperatorVerdict:
    """Of findings in order of importance."""
    result: Result = "could not measure" if unmeasured else "pass"
    if any(finding.fails for finding in findings):
        result = "regressed"
    counts = Counter(finding.verdict for finding in findings)
    return OperatorVerdict(
        operator,
        result,
        findings[0].verdict if findings else None,
        {verdict: counts[verdict] for verdict in ORDER if counts[verdict]},
        sum(finding.verdict in FAILING and not finding.fails for finding in findings),
        unmeasured,
    )
