"""What a run is about to compile and tune, done beforehand and side by side, so that measuring finds it done.

A run measures one operator after the other, and must: two measurements on one GPU disturb each other. Compiling does
not need the GPU, and with torch.compile in mode max-autotune it was nine tenths of all preparing: 21 of 24 minutes of
tier core on an H200, most of that on one core of sixteen. So before the first operator is measured every case is
prepared and run once, unmeasured, in as many workers as there are cores; their autotuners take turns on the GPU
(groundspeed.measure.turns). Then the workers that measure find compilers' caches full, and what Triton's autotuners
chose in a folder of the run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed.compiler_caches import Note
from groundspeed.cores import usable_cores
from groundspeed.errors import UserError
from groundspeed.measure.compiler_use import uses_compiler
from groundspeed.measure.lane import Lane, Place
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.operator import Case
from groundspeed.session import Run, job_of
from groundspeed.tree import BACKENDS, Implementation

_MOST_WORKERS = 20  # each holds a context of some 500 MB on the GPU, and the inputs of a case
_FEWEST_CORES = 4  # with fewer there is nothing to gain
_SILENT = {"load": 900.0, "prepare": 900.0, "first run": 600.0}  # seconds, while others take theirs
_COMPILED, _OTHER = 8.0, 1.0  # relative costs of an implementation and case
_START_SECONDS, _COST_SECONDS = 15.0, 1.5  # of the whole, and of a cost of one in one worker


@dataclass(frozen=True)
class Part:
    """What one worker rehearses: some implementations of an operator on some of its cases.

    ``notes`` are by an implementation's name and a case.
    """

    run: Run
    operator: str
    implementations: tuple[Implementation, ...]
    cases: tuple[Case, ...]
    compiled: bool
    notes: Mapping[tuple[str, Case], Note]

    @property
    def pairs(self) -> int:
        return len(self.implementations) * len(self.cases)

    @property
    def cost(self) -> float:
        return self.pairs * (_COMPILED if self.compiled else _OTHER)


@dataclass(frozen=True)
class Rehearsed:
    """How many (implementation, case) pairs were, and how many could not be: those are compiled in their turn."""

    done: int = 0
    failed: int = 0

    def __add__(self, other: Rehearsed) -> Rehearsed:
        return Rehearsed(self.done + other.done, self.failed + other.failed)


def device_of(place: Place) -> str:
    """The kind of GPU, as its driver calls it, or the CPU."""
    return place.gpu.name if place.gpu else "cpu"


def parts_of(runs: Mapping[str, Run], device: str) -> list[Part]:
    """What has not been rehearsed yet of some operators' runs, in the order to do it; ``device`` is the GPU's name.

    Left out are implementations that compile nothing or keep nothing of it, and operators spread over several GPUs.
    A spec that cannot be used is reported when its turn comes.
    """
    found = []
    for operator, run in runs.items():
        try:
            spec = run.tree.spec(operator)
        except UserError:
            continue
        if spec.world:
            continue
        chosen = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
        compiled = [one for one in chosen if one.backend == "torch" and uses_compiler(one.files)]
        built = [one for one in chosen if one.backend in BACKENDS and one.backend != "torch"]
        cases = run.selection.cases(spec)
        notes = _notes(run, operator, [*compiled, *built], cases, device)
        # Products are tuned for minutes, each case by itself; elsewhere a worker's start outweighs a case.
        pieces = [(case,) for case in cases] if spec.bound == "compute" else [cases]
        found += [_part(run, operator, compiled, piece, notes, compiled=True) for piece in pieces]
        found.append(_part(run, operator, built, cases, notes, compiled=False))
    left = [part for part in found if part.pairs]
    tuned = sorted((part for part in left if part.compiled), key=lambda part: len(part.cases) > 1)
    return _spread(tuned, [part for part in left if not part.compiled])


def _spread(*queues: Sequence[Part]) -> list[Part]:
    """One queue of several, each in its own order and all of them to the end: some want the GPU, others the cores."""
    places = [(number / len(queue), part) for queue in queues for number, part in enumerate(queue)]
    return [part for _, part in sorted(places, key=lambda place: place[0])]


def _notes(
    run: Run, operator: str, chosen: Sequence[Implementation], cases: Sequence[Case], device: str
) -> dict[tuple[str, Case], Note]:
    ours = {one.name: (one.backend, run.tree.implementation_digest(one)) for one in chosen}
    theirs = {case: run.tree.case_digest(operator, case) for case in cases}
    return {(name, case): Note(*code, theirs[case], device) for name, code in ours.items() for case in cases}


def _part(
    run: Run,
    operator: str,
    chosen: Sequence[Implementation],
    cases: Sequence[Case],
    notes: Mapping[tuple[str, Case], Note],
    compiled: bool,
) -> Part:
    """Without implementations and cases of which nothing is left to do."""
    left = {(one.name, case) for one in chosen for case in cases if not notes[one.name, case].is_there()}
    names = {name for name, _ in left}
    return Part(
        run,
        operator,
        tuple(one for one in chosen if one.name in names),
        tuple(case for case in cases if any(case == other for _, other in left)),
        compiled,
        notes,
    )


def is_worth_it(parts: Sequence[Part], cores: int | None = None) -> bool:
    """Whether doing them side by side beforehand takes less time than each in its turn."""
    return len(parts) > 1 and (cores or usable_cores()) >= _FEWEST_CORES


def seconds_of(parts: Sequence[Part], lanes: int) -> float:
    """About how long rehearsing them takes."""
    return _START_SECONDS + _COST_SECONDS * sum(part.cost for part in parts) / _workers(lanes)


def _workers(lanes: int) -> int:
    return max(lanes, min(_MOST_WORKERS * lanes, usable_cores()))


def rehearse(
    parts: Sequence[Part], lanes: Sequence[Lane], folder: Path, tell: Callable[[Part, float], None]
) -> Rehearsed:
    """Rehearse all parts on the lanes. ``tell`` is called with each that has ended and the share of the work done.

    folder
        Where Triton's tunings and the lock by which autotuners take turns are kept.

    An interrupt drops what has not begun and ends what has.
    """
    whole, seen, total = Rehearsed(), 0.0, sum(part.cost for part in parts)
    pool = ThreadPoolExecutor(_workers(len(lanes)))
    try:
        waiting = {
            pool.submit(_outcome, part, lanes[number % len(lanes)], folder): part for number, part in enumerate(parts)
        }
        for done in as_completed(waiting):
            part = waiting[done]
            whole += _noted(part, done.result())
            seen += part.cost
            tell(part, seen / total)
    except BaseException:
        for lane in lanes:
            lane.workers.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return whole


def _outcome(part: Part, lane: Lane, folder: Path) -> Outcome:
    job = msgspec.structs.replace(
        job_of(part.run, part.operator, list(part.implementations), part.cases),
        turns=str(folder / f"{lane.place.label or 'turns'}.lock"),
        tunings=str(folder),
        limits=_SILENT,
    )
    return supervise(job, lane.workers.environment, lambda progress: None, workers=lane.workers)


def _noted(part: Part, outcome: Outcome) -> Rehearsed:
    """Leave a note of each pair that went well, and of one that is skipped: it would be again."""
    failed = 0
    for (number, name), row in outcome.rows.items():
        if row.status == "failed":
            failed += 1
        else:
            with contextlib.suppress(OSError):  # a cache that cannot be written to: the next run rehearses it again
                part.notes[name, part.cases[number]].leave()
    missing = part.pairs - len(outcome.rows)
    return Rehearsed(len(outcome.rows) - failed, failed + missing)
