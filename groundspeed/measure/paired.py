"""Both sides of every pair in one process, alternating on the same buffers: the engine under the gate.

Each process is a worker of its own, forked from one that has done the imports and nothing else, or started anew where
there is no such nursery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from groundspeed.gate.paired import MeasureLost, Pair, PairOutcome, PairRequest, PairSamples
from groundspeed.machine import machine_name
from groundspeed.measure.compiler_use import uses_compiler
from groundspeed.measure.lane import UNATTENDED, Place, default_place, hold, widest_place
from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job, Side
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.measure.workers import Workers
from groundspeed.operator import Case
from groundspeed.records import Measurement
from groundspeed.selection import chosen_timer
from groundspeed.tree import Tree


class PairedEngine:
    """Measures requests one after the other. Its nursery begins with the first request and serves all; ``close`` it.

    ``tell`` is called once with each line on what makes its workers take longer to start.
    """

    def __init__(self, tell: Callable[[str], None] = lambda line: None) -> None:
        self._tell, self._told = tell, set[str]()
        self._open = ExitStack()
        self._workers: dict[Place, Workers] = {}

    def __call__(self, request: PairRequest) -> Iterator[PairSamples]:
        """Yield what each process learnt, in order. Raises MeasureLost when no worker can measure any more."""
        place = _place(request)
        workers = self._workers_of(place, request)
        for number in range(request.first_process, request.first_process + request.processes):
            with hold(place, UNATTENDED):
                outcome = supervise(_job(request, number), workers.environment, lambda progress: None, workers=workers)
            self._remark(workers)
            if outcome.environment is None:
                raise MeasureLost(outcome.problem or f"{request.operator}: process {number} ended before it began")
            yield PairSamples(
                operator=request.operator,
                process=number,
                machine=machine_name(request.device),
                environment=outcome.environment,
                outcomes=tuple(_outcomes(request, outcome)),
                seconds=outcome.seconds,
            )

    def close(self) -> None:
        """End the nursery; a request after this begins another."""
        self._workers.clear()
        self._open.close()

    def _remark(self, workers: Workers) -> None:
        for line in workers.remarks:
            if line not in self._told:
                self._told.add(line)
                self._tell(line)

    def _workers_of(self, place: Place, request: PairRequest) -> Workers:
        if place not in self._workers:
            workers = Workers(worker_environment(place.variables), compiler=_uses_compiler(request))
            self._workers[place] = self._open.enter_context(workers)
        return self._workers[place]


def _uses_compiler(request: PairRequest) -> bool:
    sides = [side for pair in request.pairs for side in (pair.base, pair.head)]
    files = [Tree(side.tree).implementation(request.operator, side.implementation).files for side in sides]
    return uses_compiler(file for own in files for file in own)


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
        vouched=request.vouched or process > request.first_process,
        tunings=str(request.tunings or ""),
        timer=chosen_timer(),
    )


def _place(request: PairRequest) -> Place:
    """One GPU, or all that are visible for an operator that is spread over them."""
    spread = bool(Tree(request.spec_tree).spec(request.operator).world)
    return widest_place(request.device) if spread else default_place(request.device)


def _sides(pair: Pair, base_first: bool) -> list[Side]:
    """Base and head in the order of preparation."""
    cases = tuple(case.label for case in pair.cases)
    base, head = (
        Side(f"{which}/{pair.name}", str(Path(side.tree)), f"groundspeed_{which}", side.implementation, cases)
        for which, side in (("base", pair.base), ("head", pair.head))
    )
    return [base, head] if base_first else [head, base]


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
