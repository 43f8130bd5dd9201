"""Base and head side by side apart from the gate: what a plant truly adds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from groundspeed.analysis.stats import hodges_lehmann, median
from groundspeed.gate.paired import MeasurePairs, Pair, PairRequest, Side
from groundspeed.operator import Case

QUANTITY = "device_cold"
Series = tuple[str, Case]  # implementation, case


@dataclass(frozen=True)
class Seen:
    """Medians of both sides in each process, ns."""

    base: tuple[float, ...]
    head: tuple[float, ...]

    @property
    def base_ns(self) -> float:
        return median(self.base)

    @property
    def head_ns(self) -> float:
        """What head takes where base takes ``base_ns``."""
        return self.base_ns * self.ratio

    @property
    def ratio(self) -> float:
        return math.exp(hodges_lehmann(np.log(self.ratios)))

    @property
    def ratios(self) -> list[float]:
        return [head / base for head, base in zip(self.head, self.base, strict=True)]


@dataclass(frozen=True)
class Comparison:
    """What was seen of each series that ran on both sides in every process; why others did not, by implementation."""

    seen: dict[Series, Seen]
    device: str
    failures: dict[str, str]


@dataclass(frozen=True)
class Apart:
    """How to measure apart. Process numbers, and with them the inputs, are not those of any gate run."""

    measure: MeasurePairs
    device: str
    processes: int
    rounds: int
    first_process: int = 1000

    def compare(self, operator: str, base: Path, head: Path, names: Iterable[str], cases: Sequence[Case]) -> Comparison:
        """Measure both sides of these implementations on these cases."""
        pairs = tuple(Pair(name, Side(base, name), Side(head, name), tuple(cases)) for name in names)
        request = PairRequest(
            operator=operator,
            spec_tree=base,
            pairs=pairs,
            quantities=(QUANTITY,),
            device=self.device,
            processes=self.processes,
            rounds=self.rounds,
            first_process=self.first_process,
        )
        medians: dict[Series, list[tuple[float, float]]] = {}
        failures: dict[str, str] = {}
        device = ""
        for samples in self.measure(request):
            device = samples.environment.device_name
            for outcome in samples.outcomes:
                for side in (outcome.base, outcome.head):
                    if side.status == "failed":
                        failures.setdefault(outcome.pair, f"{outcome.case.label}: {side.failure}: {side.reason}")
                sides = [side.samples.get(QUANTITY, []) for side in (outcome.base, outcome.head)]
                if all(sides):
                    both = medians.setdefault((outcome.pair, outcome.case), [])
                    both.append((median(sides[0]), median(sides[1])))
        seen = {
            series: Seen(tuple(base for base, _ in both), tuple(head for _, head in both))
            for series, both in medians.items()
            if len(both) == self.processes
        }
        return Comparison(seen, device, failures)
