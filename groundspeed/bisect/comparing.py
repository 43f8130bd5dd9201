"""One step of the search: the good version and another one side by side, judged as the gate judges base and head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from groundspeed.analysis.rule import Verdict
from groundspeed.bisect.commits import Version
from groundspeed.bisect.search import State
from groundspeed.errors import UserError
from groundspeed.gate.assemble import Assembled, assemble
from groundspeed.gate.evidence import Judging, Measuring, Mixed, Progress
from groundspeed.gate.paired import MeasurePairs, Pair, Side
from groundspeed.gate.plan import Plan, PlannedPair
from groundspeed.gate.report import Finding
from groundspeed.operator import Case
from groundspeed.tree import Tree

STATES = {Verdict.REGRESSED: State.BAD, Verdict.UNCHANGED: State.GOOD, Verdict.IMPROVED: State.GOOD}


@dataclass(frozen=True)
class Compared:
    """What a comparison came to on one case. ``finding`` is the gate's; None where it has none.

    reason
        Why it cannot be told which of the two it is; empty where it can.
    """

    case: Case
    state: State
    finding: Finding | None = None
    reason: str = ""

    @property
    def ratio(self) -> float:
        """This version over the good one; 1 where nothing was measured."""
        return (self.finding.ratio if self.finding else None) or 1.0


@dataclass(frozen=True)
class Comparing:
    """What stays the same over all steps. ``specs`` gives inputs, reference and tolerance to every version."""

    measure: MeasurePairs
    specs: Tree
    operator: str
    good: Version
    judging: Judging
    seed: int
    progress: Progress

    def compare(self, version: Version, cases: tuple[Case, ...]) -> tuple[Compared, ...]:
        """One answer a case, in their order.

        Raises UserError when nothing more can be measured: the device is gone, another one came, the budget is spent.
        """
        if self.good.tree is None or not self.good.implementation:
            raise ValueError(f"the good commit {self.good.commit} has no {self.operator} to compare with")
        if version.tree is None or not version.implementation:
            reason = "it has no such implementation"
            return tuple(Compared(case, State.UNKNOWN, reason=reason) for case in cases)
        pair = Pair(
            version.implementation,
            Side(self.good.tree, self.good.implementation),
            Side(version.tree, version.implementation),
            cases,
            dict(self.specs.spec(self.operator).tolerance),
        )
        plan = Plan(pairs=(PlannedPair(self.operator, pair, "asked for", ""),))
        body = self._measured(plan)
        return tuple(self._answer(case, body) for case in cases)

    def _measured(self, plan: Plan) -> Assembled:
        measuring = Measuring(self.measure, self.specs, self.judging, self.seed, self.progress)
        try:
            evidence = measuring.run(plan)
        except Mixed as error:
            raise UserError(f"results of two runners were mixed: {error}") from error
        for reason in evidence.lost.values():
            raise UserError(f"{self.operator}: nothing more can be measured: {reason}")
        return assemble(plan, evidence, self.judging, (), ["groundspeed", "gate"])

    def _answer(self, case: Case, body: Assembled) -> Compared:
        finding = _of_case(body.findings, case)
        if finding is None:
            reasons = [entry.reason for entry in body.unmeasured if entry.case == case.label]
            return Compared(case, State.UNKNOWN, reason=(reasons or [*body.remarks, "not measured"])[0])
        state = STATES.get(finding.verdict, State.UNKNOWN)
        known = state is not State.UNKNOWN
        return Compared(case, state, finding, "" if known else f"{finding.verdict}: {finding.reason}")


def _of_case(findings: Iterable[Finding], case: Case) -> Finding | None:
    return next((each for each in findings if (each.dtype, each.shape) == (case.dtype, case.shape_label)), None)
