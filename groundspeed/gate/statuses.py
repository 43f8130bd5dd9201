"""What the two sides' statuses come to, before any number is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.paired import PairOutcome
from groundspeed.records import Measurement

Outcomes = Sequence[PairOutcome]


@dataclass(frozen=True)
class CaseStatus:
    """Whether a case can be compared (``verdict`` None), and if not what that means.

    ``unmeasured`` marks what must not pass for lack of a comparison.
    """

    verdict: Verdict | None
    reason: str = ""
    unmeasured: bool = False


COMPARABLE = CaseStatus(None)


def case_status(outcomes: Outcomes, is_new: bool) -> CaseStatus:
    """Judge the statuses of one pair on one case over its processes; ``outcomes`` is not empty.

    A side has failed when it failed in any process: a crash in one of five is a crash.
    """
    base, head = _overall([o.base for o in outcomes]), _overall([o.head for o in outcomes])
    if is_new:
        return _new(head)
    if head.status == "failed":
        if base.status == "failed":
            reason = f"fails on both sides: {_described(head)}"
            return CaseStatus(Verdict.INCOMPARABLE, reason, unmeasured=True)
        return CaseStatus(Verdict.BROKEN, _described(head))
    if base.status == "failed":
        return _fixed(base, head)
    if head.status == "skipped":
        if base.status == "skipped":
            return CaseStatus(Verdict.INCOMPARABLE, head.reason)
        return CaseStatus(Verdict.REMOVED, f"head skips what base measures: {head.reason}")
    if base.status == "skipped":
        return CaseStatus(Verdict.NEW, f"base skipped it: {base.reason}")
    return COMPARABLE


def _new(head: Measurement) -> CaseStatus:
    if head.status == "failed":
        return CaseStatus(Verdict.BROKEN, f"new, and {_described(head)}")
    if head.status == "skipped":
        return CaseStatus(Verdict.INCOMPARABLE, head.reason)
    return CaseStatus(Verdict.NEW, "no baseline")


def _fixed(base: Measurement, head: Measurement) -> CaseStatus:
    """Base failed, head did not. A wrong answer was a fault of base's; any other failure may be the gate's own."""
    if head.status == "skipped":
        return CaseStatus(Verdict.INCOMPARABLE, f"base failed, head skips it: {head.reason}")
    if base.failure == "incorrect":
        return CaseStatus(Verdict.FIXED, f"base: {_described(base)}")
    return CaseStatus(
        Verdict.FIXED, f"base could not run, so nothing was compared: {_described(base)}", unmeasured=True
    )


def _overall(measurements: Sequence[Measurement]) -> Measurement:
    """The measurement whose status speaks for all processes: a failed one first, then a skipped one."""
    for status in ("failed", "skipped"):
        found = [m for m in measurements if m.status == status]
        if found:
            common, _ = Counter(m.reason for m in found).most_common(1)[0]
            return next(m for m in found if m.reason == common)
    return measurements[0]


def _described(measurement: Measurement) -> str:
    kind = measurement.failure or "error"
    return f"failed ({kind}): {measurement.reason}" if measurement.reason else f"failed ({kind})"
