"""One operator of one round: calibrate, plant, commit, let the gate look, and measure apart what was planted."""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from groundspeed.gate import gate_command
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.report import Finding, Report, read_report
from groundspeed.gate.trials.apart import QUANTITY, Apart, Comparison, Seen, Series
from groundspeed.gate.trials.assignment import DEFAULT_T, DTYPES, THRESHOLDS, Group, policy, sizes_of_round
from groundspeed.gate.trials.calibration import amount_for, first_amount
from groundspeed.gate.trials.plant import Amounts, Plant
from groundspeed.gate.trials.record import Done, Line, Point, Trial
from groundspeed.gate.trials.scratch import Scratch
from groundspeed.operator import Case
from groundspeed.tree import Tree

AIM = 1.03  # a plant aims a little over its size: what it comes to is measured, and scatters
SHORTEST_NS, LONGEST_NS = 5_000, 1_000_000  # device time of the cases that are planted in
_CALIBRATION_ROUNDS, _TRUE_PROCESSES, _TRUE_ROUNDS = 60, 3, 100

Planned = dict[Plant, dict[Case, int]]
Say = Callable[[str], None]


@dataclass
class OperatorTrial:
    """An operator of a round. ``points`` are all that is known of its series; what is learnt is added to ``learnt``.

    ``shift`` is how far the sizes have moved on over the series: by one a round, and from operator to operator.
    """

    operator: str
    plants: tuple[Plant, ...]
    round: int
    shift: int
    scratch: Scratch
    engine: Callable[[], MeasurePairs]
    device: str
    commit: str
    folder: Path  # for copies of the operators
    points: list[Point]
    say: Say = print
    learnt: list[Point] = field(default_factory=list)

    def run(self) -> list[Line]:
        """Everything to be kept of it. Raises AnchorLost where a file is not what its plant was written for."""
        began = time.monotonic()
        self.scratch.to_base()
        base = self.scratch.copy_impls(self.folder / "base")
        tree = Tree(base)
        spec = tree.spec(self.operator)
        cases = [case for case in spec.bench_cases if case.dtype in DTYPES]
        sizes = sizes_of_round(self.plants, self.shift)
        unknown = {plant: self._unknown(plant, cases) for plant in self.plants}
        if any(unknown.values()):
            traffic = {case: spec.traffic(case).total for case in cases}
            self._calibrate(
                base,
                {p: {c: first_amount(p.kind, p.units(c), traffic[c]) for c in some} for p, some in unknown.items()},
                cases,
            )
            self._calibrate(base, self._planned(cases, sizes), cases)
        planned = self._planned(cases, sizes)
        planted = self._commit(planned, sizes)
        head = self.scratch.copy_impls(self.folder / "head")
        report = self._gate(planted, policy(self.operator, sizes))
        truth = self._compared(Apart(self.engine(), self.device, _TRUE_PROCESSES, _TRUE_ROUNDS), base, head, cases)
        self._learn(planned, truth.seen)
        trials = self._trials(planned, sizes, truth.seen, report, truth.device)
        return [*self.learnt, *trials, Done(self.round, self.operator, report.seconds, time.monotonic() - began)]

    def _known(self, plant: Plant, case: Case) -> list[Point]:
        series = plant.operator, plant.implementation, case.dtype, case.shape_label
        return [point for point in (*self.points, *self.learnt) if point.series == series]

    def _unknown(self, plant: Plant, cases: Sequence[Case]) -> list[Case]:
        return [case for case in cases if not self._known(plant, case)]

    def _planned(self, cases: Iterable[Case], sizes: Mapping[Group, float]) -> Planned:
        """The amounts of the round, where an amount is known that adds the size to a case of the right duration."""
        planned: Planned = {plant: {} for plant in self.plants}
        for plant in self.plants:
            for case in cases:
                known = self._known(plant, case)
                base_ns = known[-1].base_ns if known else 0.0
                if SHORTEST_NS <= base_ns <= LONGEST_NS:
                    wanted = AIM * sizes[plant.implementation, case.dtype] * base_ns
                    amount = amount_for(plant.kind, wanted, known, plant.units(case))
                    if amount is not None:
                        planned[plant][case] = amount
        return planned

    def _calibrate(self, base: Path, planned: Planned, cases: Sequence[Case]) -> None:
        """Measure what these amounts add, in one process."""
        chosen = [plant for plant in self.plants if planned[plant]]
        if not chosen:
            return
        number = len(list(self.folder.glob("variant-*")))
        variant = self.scratch.copy_impls(self.folder / f"variant-{number}")
        for plant in chosen:
            plant.write(variant, planned[plant])
        wanted = [case for case in cases if any(case in planned[plant] for plant in chosen)]
        self.say(f"{self.operator}: calibrating {sum(len(planned[plant]) for plant in chosen)} plants")
        apart = Apart(self.engine(), self.device, 1, _CALIBRATION_ROUNDS, first_process=2000 + number)
        self._learn(planned, self._compared(apart, base, variant, wanted).seen)

    def _compared(self, apart: Apart, base: Path, head: Path, cases: Sequence[Case]) -> Comparison:
        """Measure every implementation, planted in or not, and say aloud which could not be."""
        found = apart.compare(self.operator, base, head, [plant.implementation for plant in self.plants], cases)
        for implementation, reason in found.failures.items():
            self.say(f"{self.operator}/{implementation}: NOT MEASURED: {reason}")
        return found

    def _learn(self, planned: Planned, seen: Mapping[Series, Seen]) -> None:
        for plant, amounts in planned.items():
            for case, amount in amounts.items():
                found = seen.get((plant.implementation, case))
                if found is not None:
                    where = plant.operator, plant.implementation, case.dtype, case.shape_label
                    self.learnt.append(Point(*where, amount, found.base_ns, found.head_ns))

    def _commit(self, planned: Planned, sizes: Mapping[Group, float]) -> str:
        """Plant in every file, also where a file's own cases get nothing: those are the controls."""
        for plant, amounts in planned.items():
            plant.write(self.scratch.impls, amounts)
        listed = ", ".join(f"{name} {dtype} {size:.0%}" for (name, dtype), size in sizes.items())
        return self.scratch.commit(f"Slow down {self.operator}: {listed}")

    def _gate(self, planted: str, toml: str) -> Report:
        """The gate's report on the planted commit, found through the diff; its own output is not shown."""
        config, out = self.folder / "policy.toml", self.folder / "report.json"
        config.write_text(toml, encoding="utf-8")
        words = ["--project", str(self.scratch.root), "--base", self.scratch.base, "--head", planted]
        words += ["--device", self.device, "--config", str(config), "--json", str(out)]
        words += [word for dtype in DTYPES for word in ("--dtype", dtype)]
        parser = argparse.ArgumentParser()
        parser.add_argument("--project", type=Path)
        gate_command.add_arguments(parser)
        self.say(f"{self.operator}: gate --base {self.scratch.base[:12]} --head {planted[:12]}")
        with contextlib.redirect_stdout(io.StringIO()):
            gate_command.run_with(parser.parse_args(words), self.engine)
        return read_report(out)

    def _trials(
        self,
        planned: Planned,
        sizes: Mapping[Group, float],
        truth: Mapping[Series, Seen],
        report: Report,
        device: str,
    ) -> list[Trial]:
        found = {(f.implementation, f.dtype, f.shape, f.metric): f for f in report.findings}
        trials = []
        for plant in self.plants:
            for (implementation, case), seen in truth.items():
                if implementation == plant.implementation:
                    finding = found.get((implementation, case.dtype, case.shape_label, QUANTITY))
                    size = sizes[implementation, case.dtype]
                    trials.append(self._trial(plant, case, planned[plant], size, seen, finding, report, device))
        return trials

    def _trial(
        self,
        plant: Plant,
        case: Case,
        amounts: Amounts,
        size: float,
        seen: Seen,
        finding: Finding | None,
        report: Report,
        device: str,
    ) -> Trial:
        return Trial(
            round=self.round,
            commit=self.commit,
            device=device,
            operator=plant.operator,
            implementation=plant.implementation,
            dtype=case.dtype,
            shape=case.shape_label,
            kind=plant.kind,
            amount=amounts.get(case, 0),
            size=size if case in amounts else 0.0,
            threshold=(finding and finding.threshold) or THRESHOLDS.get(size, DEFAULT_T),
            base_ns=seen.base_ns,
            true_ratio=seen.ratio,
            true_low=min(seen.ratios),
            true_high=max(seen.ratios),
            true_processes=len(seen.ratios),
            verdict=str(finding.verdict) if finding else "could not measure",
            ratio=finding.ratio if finding else None,
            low=finding.low if finding else None,
            high=finding.high if finding else None,
            processes=(finding.processes or 0) if finding else 0,
            reason=finding.reason if finding else _why_not(report, plant, case),
        )


def _why_not(report: Report, plant: Plant, case: Case) -> str:
    """What the gate says of a case that it has no device time of."""
    where = plant.implementation, case.dtype, case.shape_label
    own = [finding for finding in report.findings if (finding.implementation, finding.dtype, finding.shape) == where]
    lost = [entry.reason for entry in report.unmeasured if entry.implementation in ("", plant.implementation)]
    return next((f"{f.verdict}: {f.reason}" for f in own), lost[0] if lost else report.summary)
