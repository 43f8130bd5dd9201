"""Both sides of every pair in one process, alternating on the same buffers: the engine under the gate.

Each process is a fresh worker. The next ones are started while the first measures and wait, their imports done and
the device untouched, for their job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from groundspeed.gate.paired import MeasureLost, Pair, PairOutcome, PairRequest, PairSamples
from groundspeed.machine import machine_name
from groundspeed.measure.lane import UNATTENDED, default_place, hold
from groundspeed.measure.process import Worker, start_worker, worker_environment
from groundspeed.measure.protocol import Job, Side
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.operator import Case
from groundspeed.records import Measurement
from groundspeed.selection import chosen_timer

_AHEAD = 2  # workers waiting: each holds a few hundred MB of host memory and, until its job, nothing of the GPU's


def measure_pairs(request: PairRequest) -> Iterator[PairSamples]:
    """Yield what each process learnt, in order. Raises MeasureLost when no worker can measure any more."""
    place = default_place(request.device)
    environment = worker_environment(place.variables)
    numbers = range(request.first_process, request.first_process + request.processes)
    waiting: list[Worker] = []
    try:
        for number in numbers:
            ahead = min(_AHEAD, numbers[-1] - number)
            while len(waiting) <= ahead:
                waiting.append(start_worker(environment))
            with hold(place, UNATTENDED):
                outcome = supervise(_job(request, number), environment, lambda progress: None, waiting.pop(0))
            if outcome.environment is None:
                raise MeasureLost(outcome.problem or f"{request.operator}: process {number} ended before it began")
            yield PairSamples(
                operator=request.operator,
                process=number,
                machine=machine_name(request.device),
                environment=outcome.environment,
                outcomes=tuple(_outcomes(request, outcome)),
            )
    finally:
        for worker in waiting:
            worker.kill()


def _job(request: PairRequest, process: int) -> Job:
    cases = list(dict.fromkeys(case for pair in request.pairs for case in pair.cases))
    sides = [side for pair in request.pairs for side in _sides(pair, base_first=process % 2 == 0)]
    return Job(
        operator=request.operator,
        tree=str(request.spec_tree),
        specs=str(request.spec_tree),
        device=request.device,
        implementations=tuple(side.label for side in sides),
        cases=tuple((case.dtype, case.shape) for case in cases),
        sides=tuple(sides),
        rounds=request.rounds,
        tolerance={
            dtype: (tolerance.rtol, tolerance.atol, tolerance.norm_bound)
            for pair in request.pairs
            for dtype, tolerance in pair.tolerance.items()
        },
        seed=request.seed + process,
        timer=chosen_timer(),
    )


def _sides(pair: Pair, base_first: bool) -> list[Side]:
    """Base and head in the order of preparation. The second takes over the first's tuning where kernels are equal."""
    cases = tuple(case.label for case in pair.cases)
    base, head = (
        Side(f"{which}/{pair.name}", str(Path(side.tree)), f"groundspeed_{which}", side.implementation, cases)
        for which, side in (("base", pair.base), ("head", pair.head))
    )
    first, second = (base, head) if base_first else (head, base)
    return [first, msgspec.structs.replace(second, tuned_by=first.label) if pair.share else second]


def _outcomes(request: PairRequest, outcome: Outcome) -> Iterator[PairOutcome]:
    rows = {(row.dtype, row.shape_label, row.implementation): row for row in outcome.rows.values()}
    for pair in request.pairs:
        for case in pair.cases:
            base, head = (_row(rows, case, which, pair, outcome) for which in ("base", "head"))
            yield PairOutcome(pair.name, case, base, head)


def _row(
    rows: dict[tuple[str, str, str], Measurement], case: Case, which: str, pair: Pair, outcome: Outcome
) -> Measurement:
    side = pair.base if which == "base" else pair.head
    row = rows.get((case.dtype, case.shape_label, f"{which}/{pair.name}"))
    if row is None:
        reason = outcome.problem or "the worker ended before its turn"
        return Measurement(side.implementation, case.dtype, case.dims, "failed", failure="crash", reason=reason)
    return msgspec.structs.replace(row, implementation=side.implementation)
