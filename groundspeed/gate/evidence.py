"""Measuring what is planned: five processes for everything, fresh ones for suspects, within the budget."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from groundspeed.gate.config import Config
from groundspeed.gate.floors import SeriesKey
from groundspeed.gate.metrics import METRICS, Method, Metric
from groundspeed.gate.paired import MeasureLost, MeasurePairs, Pair, PairOutcome, PairRequest, PairSamples
from groundspeed.gate.plan import Plan, PlannedPair
from groundspeed.gate.report import Step
from groundspeed.gate.series import Series, is_suspect, presence
from groundspeed.gate.statuses import case_status
from groundspeed.gate.words import spent
from groundspeed.operator import Case
from groundspeed.report.units import counted
from groundspeed.tree import Tree

FIRST, FRESH = "first", "fresh"  # the two steps
CaseKey = tuple[str, str, Case]  # operator, pair, case
Progress = Callable[[str], None]


class Mixed(Exception):
    """Results of two different devices or installations came together: their ratio means nothing."""


@dataclass
class Evidence:
    """Outcomes of each case, one a process: ``first`` of step 1, ``fresh`` of step 2. ``lost`` says why some lack."""

    first: dict[CaseKey, list[PairOutcome]] = field(default_factory=dict)
    fresh: dict[CaseKey, list[PairOutcome]] = field(default_factory=dict)
    suspects: dict[CaseKey, tuple[str, ...]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)  # operator -> reason
    steps: dict[str, Step] = field(default_factory=dict)  # what each cost
    runner: PairSamples | None = None  # the first process seen: all others must be like it

    def count(self, step: str, wall: float, phases: Mapping[str, float]) -> None:
        """Add a process to what a step cost."""
        before = self.steps.get(step, Step(step, 0, 0.0, {}))
        total = {name: before.phases.get(name, 0.0) + value for name, value in phases.items()}
        self.steps[step] = Step(step, before.processes + 1, before.seconds + wall, {**before.phases, **total})

    def check_runner(self, samples: PairSamples) -> None:
        """Raises Mixed unless the process ran where all before it did."""
        if self.runner is None:
            self.runner = samples
        mine, theirs = _fingerprint(samples), _fingerprint(self.runner)
        if mine != theirs:
            raise Mixed(f"process {samples.process} of {samples.operator} ran on {mine}, the first one on {theirs}")


@dataclass(frozen=True)
class Judging:
    """What turns a case and a metric into a series: policy, device and noise floors."""

    config: Config
    device: str
    floors: dict[SeriesKey, float]

    def series(self, operator: str, implementation: str, case: Case, metric: Metric) -> Series:
        limit = self.config.limit(operator, implementation, case.dtype, metric, self.device)
        floor_of = metric.quantity if metric.method is Method.TAIL else metric.name
        key = operator, implementation, case.dtype, case.shape_label, floor_of
        return Series(metric, limit, self.floors.get(key))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(METRICS[name] for name in self.config.metrics)


class Measuring:
    """One run of the two steps over a plan. Holds the engine and the clock; everything learnt is in ``evidence``."""

    def __init__(self, measure: MeasurePairs, head: Tree, judging: Judging, seed: int, progress: Progress) -> None:
        self.measure, self.head, self.judging, self.seed, self.progress = measure, head, judging, seed, progress
        self.config = judging.config
        self.evidence = Evidence()
        self.deadline = time.monotonic() + self.config.budget_seconds

    def run(self, plan: Plan) -> Evidence:
        """Measure every operator of the plan. Raises Mixed; anything else that is lost is written down."""
        with tempfile.TemporaryDirectory(prefix="groundspeed-tunings-") as folder:
            for number, operator in enumerate(plan.operators, 1):
                planned = plan.of(operator)
                self.progress(f"[{number}/{len(plan.operators)}] {operator}: {_size(planned)}")
                self._operator(operator, planned, Path(folder))
        return self.evidence

    def _operator(self, operator: str, planned: tuple[PlannedPair, ...], tunings: Path) -> None:
        """Both steps of one operator. What is suspect is tuned again: a poor choice must come about twice."""
        first = self._request(operator, [p.pair for p in planned])
        self._step(FIRST, replace(first, tunings=tunings / FIRST), self.evidence.first)
        suspects = {key: names for p in planned for key, names in self._suspects(p)}
        self.evidence.suspects |= suspects
        if suspects:
            again = counted(len(suspects), "suspect")
            self.progress(f"    {again} again, in {self.config.fresh_processes} fresh processes")
            second = self._second_request(operator, planned, suspects)
            self._step(FRESH, replace(second, tunings=tunings / FRESH, vouched=True), self.evidence.fresh)

    def _request(self, operator: str, pairs: Iterable[Pair]) -> PairRequest:
        quantities = dict.fromkeys(metric.quantity for metric in self.judging.metrics if metric.quantity)
        return PairRequest(
            operator=operator,
            spec_tree=self.head.root,
            pairs=tuple(pairs),
            quantities=tuple(quantities),
            device=self.judging.device,
            processes=self.config.processes,
            rounds=self.config.rounds,
            seed=self.seed,
        )

    def _second_request(
        self, operator: str, planned: Iterable[PlannedPair], suspects: dict[CaseKey, tuple[str, ...]]
    ) -> PairRequest:
        pairs = []
        for each in planned:
            cases = tuple(case for case in each.pair.cases if (operator, each.pair.name, case) in suspects)
            if cases:
                pairs.append(replace(each.pair, cases=cases))
        tails = any(METRICS[name].method is Method.TAIL for names in suspects.values() for name in names)
        return replace(
            self._request(operator, pairs),
            processes=self.config.fresh_processes,
            rounds=self.config.tail_rounds if tails else self.config.rounds,
            first_process=self.config.processes,
        )

    def _step(self, name: str, request: PairRequest, into: dict[CaseKey, list[PairOutcome]]) -> None:
        reason = f"the budget of {self.config.budget_seconds:g} s was spent"
        if request.operator in self.evidence.lost or self._spent():
            self.evidence.lost.setdefault(request.operator, reason)
            return
        iterator = iter(self.measure(request))
        began = time.monotonic()
        try:
            for count, samples in enumerate(iterator, 1):
                self.evidence.check_runner(samples)
                for outcome in samples.outcomes:
                    into.setdefault((samples.operator, outcome.pair, outcome.case), []).append(outcome)
                wall, began = time.monotonic() - began, time.monotonic()
                self.evidence.count(name, wall, samples.seconds)
                self.progress(f"    process {count} of {request.processes}: {spent(wall, samples.seconds)}")
                if self._spent() and count < request.processes:
                    self.evidence.lost[request.operator] = reason
                    break
        except MeasureLost as error:
            self.evidence.lost[request.operator] = str(error)
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _spent(self) -> bool:
        return time.monotonic() >= self.deadline

    def _suspects(self, planned: PlannedPair) -> list[tuple[CaseKey, tuple[str, ...]]]:
        """The cases of a pair with at least one suspect metric, and which."""
        found = []
        for case in planned.pair.cases:
            key = planned.operator, planned.pair.name, case
            outcomes = self.evidence.first.get(key, [])
            if planned.is_new or len(outcomes) < self.config.processes or case_status(outcomes, False).verdict:
                continue
            names = tuple(
                metric.name
                for metric in self.judging.metrics
                if all(presence(metric, outcomes))
                and is_suspect(self.judging.series(planned.operator, planned.pair.name, case, metric), outcomes)
            )
            if names:
                found.append((key, names))
        return found


def _fingerprint(samples: PairSamples) -> str:
    environment = samples.environment
    parts = (samples.machine, environment.device_name, environment.uuid_hash, environment.driver, environment.torch)
    return " ".join(part for part in parts if part)


def _size(planned: tuple[PlannedPair, ...]) -> str:
    cases = sum(len(each.pair.cases) for each in planned)
    return f"{counted(len(planned), 'implementation')}, {counted(cases, 'case')}"
