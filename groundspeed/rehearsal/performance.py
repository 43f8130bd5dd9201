"""A rehearsal: all its parts, in workers of their own, side by side."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed.cores import usable_cores
from groundspeed.errors import kind_and_line
from groundspeed.measure.lane import Lane
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.measure.turns import HAD, WAITED
from groundspeed.measure.workers import Workers
from groundspeed.records import Measurement
from groundspeed.rehearsal.parts import Part
from groundspeed.session import job_of

_MOST_WORKERS = 20  # on a GPU
_BYTES_EACH = 2 << 30  # of the GPU's memory: a context of some 500 MB, and the inputs of most cases
_SILENT = {"load": 900.0, "prepare": 600.0}  # seconds, for compilers that share the cores; to wait is to give a sign
_START_SECONDS, _COST_SECONDS = 15.0, 1.5  # of the whole, and of a cost of one in one worker


@dataclass(frozen=True)
class Rehearsed:
    """How many (implementation, case) pairs were, and how many could not be: those are compiled in their turn.

    ``problems`` are why whole parts could not be. ``timed_s`` are the seconds in which candidates were timed, one at a
    time on a GPU, and ``waited_s`` those that workers waited for that, all of them together.
    """

    done: int = 0
    failed: int = 0
    problems: tuple[str, ...] = ()
    timed_s: float = 0.0
    waited_s: float = 0.0

    def __add__(self, other: Rehearsed) -> Rehearsed:
        return Rehearsed(
            self.done + other.done,
            self.failed + other.failed,
            self.problems + other.problems,
            self.timed_s + other.timed_s,
            self.waited_s + other.waited_s,
        )


def seconds_of(parts: Sequence[Part], lanes: Sequence[Lane]) -> float:
    """About how long rehearsing them takes."""
    return _START_SECONDS + _COST_SECONDS * sum(part.cost for part in parts) / (len(lanes) * _workers(lanes))


def rehearse(
    parts: Sequence[Part], lanes: Sequence[Lane], tunings: Path, tell: Callable[[Part, float], None]
) -> Rehearsed:
    """Rehearse all parts on the lanes. ``tell`` is called with each that has ended and the share of the work done.

    tunings
        The folder where Triton's tunings are kept, and beside them the locks by which autotuners take turns.

    An interrupt drops what has not begun and ends what has. Raises OSError where the folder cannot be made.
    """
    tunings.mkdir(parents=True, exist_ok=True)
    whole, seen, total = Rehearsed(), 0.0, sum(part.cost for part in parts)
    with contextlib.ExitStack() as held:
        # Workers of its own: whatever becomes of them, those that measure come from elsewhere.
        compiler = any(part.compiled for part in parts)
        sources = [held.enter_context(Workers(lane.workers.environment, compiler)) for lane in lanes]
        pools = [held.enter_context(_pool(_workers(lanes))) for _ in lanes]
        waiting = {}
        for number, part in enumerate(parts):
            at = number % len(lanes)
            waiting[pools[at].submit(_rehearsed, part, lanes[at], sources[at], tunings)] = part
        try:
            for done in as_completed(waiting):
                whole += done.result()
                seen += waiting[done].cost
                tell(waiting[done], seen / total)
        except BaseException:
            for source in sources:
                source.stop()
            raise
    return whole


@contextlib.contextmanager
def _pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that are waited for at the end, without what they have not begun."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _workers(lanes: Sequence[Lane]) -> int:
    """At once on each lane."""
    gpu = lanes[0].place.gpu
    room = gpu.memory_bytes // _BYTES_EACH if gpu else _MOST_WORKERS
    return max(1, min(_MOST_WORKERS, room, usable_cores() // len(lanes)))


def _rehearsed(part: Part, lane: Lane, workers: Workers, tunings: Path) -> Rehearsed:
    job = msgspec.structs.replace(
        job_of(part.run, part.operator, list(part.implementations), part.cases),
        turns=str(tunings / f"{lane.place.label or 'turns'}.lock"),
        tunings=str(tunings),
        limits=_SILENT,
    )
    try:
        return _noted(part, supervise(job, workers.environment, lambda progress: None, workers=workers))
    except (OSError, subprocess.SubprocessError) as error:
        return Rehearsed(failed=part.pairs, problems=(f"{part.operator}: {kind_and_line(error)}",))


def _noted(part: Part, outcome: Outcome) -> Rehearsed:
    """Leave a note of each pair that need not be rehearsed again."""
    for (number, name), row in outcome.rows.items():
        if _is_settled(row):
            with contextlib.suppress(OSError):  # a cache that cannot be written to: the next run rehearses it again
                part.notes[name, part.cases[number]].leave()
    failed = sum(row.status == "failed" for row in outcome.rows.values())
    problems = (outcome.problem,) if outcome.problem else ()
    return Rehearsed(
        len(outcome.rows) - failed,
        failed + part.pairs - len(outcome.rows),
        problems,
        timed_s=outcome.seconds.get(HAD, 0.0),
        waited_s=outcome.seconds.get(WAITED, 0.0),
    )


def _is_settled(row: Measurement) -> bool:
    """Whether it would end in the same way again: prepared, refused by itself (which took no time), or in an error.

    Not so what found no room beside the others, or hung, or lacked a library that may be installed later.
    """
    return row.prepare_ns is not None or row.failure in ("error", "build")
