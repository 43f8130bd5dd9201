"""An engine for planted slowdowns: it reads from each side's file what was planted there, and adds that to a time."""

from __future__ import annotations

import re

import numpy as np

from groundspeed.gate.paired import PairOutcome, PairSamples
from groundspeed.gate.trials.catalog import CATALOG
from groundspeed.gate.trials.plant import Kind, sizes
from groundspeed.records import Environment, Measurement

BYTES_PER_NS = 4000.0
NOISE = 0.002
CYCLES_PER_NS, SLACK_NS, LAUNCH_NS = 1.98, 200.0, 1500.0
_C_TESTS = {"float32": ("float>", "== 4"), "float16": ("__half>", "== 2")}


def planted(text, case):
    """What a file's own table says of a case; 0 where it has none."""
    first, second = (*sizes(case), 0)[:2]
    if "PLANTED = {" in text:
        shape = re.escape(str(sizes(case)))
        found = re.search(rf"'{case.dtype}', {shape}\): (\d+)", text)
        return int(found[1]) if found else 0
    for line in text.splitlines():
        if f"first == {first} && second == {second})" in line and any(t in line for t in _C_TESTS[case.dtype]):
            return int(re.search(r"return (\d+);", line)[1])
    return 0


class TimesFromTables:
    """Noise-free but for NOISE a process and sample.

    ``blind`` are implementations whose plant adds nothing, ``broken`` those that do not run with it.
    """

    def __init__(self, specs, blind=(), broken=()):
        self.specs, self.blind, self.broken, self.requests = specs, blind, broken, []

    def __call__(self, request):
        self.requests.append(request)
        for number in range(request.processes):
            process = request.first_process + number
            random = np.random.default_rng([request.seed, process])
            outcomes = [
                PairOutcome(
                    pair.name, case, *(self._side(request, side, case, random) for side in (pair.base, pair.head))
                )
                for pair in request.pairs
                for case in pair.cases
            ]
            where = Environment(device="cuda", device_name="Fake", python="3.12", os="linux", torch="2")
            yield PairSamples(request.operator, process, "fake", where, tuple(outcomes))

    def _side(self, request, side, case, random):
        (plant,) = (p for p in CATALOG if (p.operator, p.implementation) == (request.operator, side.implementation))
        time = 2000.0 + self.specs.spec(request.operator).traffic(case).total / BYTES_PER_NS
        amount = planted((side.tree / plant.file).read_text(), case)
        if amount and side.implementation in self.broken:
            return Measurement(
                side.implementation, case.dtype, case.dims, "failed", failure="build", reason="no such T"
            )
        if amount and side.implementation not in self.blind:
            time += self._effect(plant, case, amount, time)
        samples = time * (1 + NOISE * random.standard_normal(request.rounds)) * (1 + NOISE * random.standard_normal())
        return Measurement(
            side.implementation,
            case.dtype,
            case.dims,
            "ok",
            samples={name: list(samples) for name in request.quantities},
        )

    @staticmethod
    def _effect(plant, case, amount, time):
        if plant.kind is Kind.SPIN:
            return max(0.0, amount / CYCLES_PER_NS - SLACK_NS)
        share = amount / plant.units(case)
        return 0.8 * share * time + (LAUNCH_NS if plant.kind is Kind.CALL else 0.0)
