"""The supervisor: runs a worker, listens, and when it dies goes on without the implementation that killed it.

What the worker finished stays. A crash, a hang or a lost device while one implementation had the floor is that
implementation's failure; one while all were being timed together is found by timing them one at a time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from groundspeed.measure.process import Worker, start_worker
from groundspeed.measure.protocol import CaseDone, Done, Dying, Event, Job, Phase, Ready, Row, decode_event
from groundspeed.records import Ceilings, Environment, Failure, Measurement

_MAX_RESTARTS = 40


@dataclass(frozen=True)
class Progress:
    """Where a sweep is: for a bar or a log line."""

    operator: str
    phase: str
    case: int
    cases: int
    implementation: str
    rows: int
    rows_expected: int


@dataclass
class Outcome:
    """All that a sweep brought. ``rows`` by (case number, implementation)."""

    rows: dict[tuple[int, str], Measurement] = field(default_factory=dict)
    environment: Environment | None = None
    ceilings: Ceilings | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    problem: str = ""  # why nothing could be measured at all


def supervise(
    job: Job, environment: dict[str, str], progress: Callable[[Progress], None], first: Worker | None = None
) -> Outcome:
    """Run a job to its end, through as many workers as it takes; ``first`` is one that waits for a job already."""
    outcome = Outcome()
    remaining = list(range(len(job.cases)))
    attempt: Job | None = job
    waiting = first
    for _ in range(_MAX_RESTARTS):
        assert attempt is not None
        watch = _Watch(remaining, outcome, attempt, progress)
        end = _run_worker(attempt, waiting or start_worker(environment), watch)
        waiting = None
        remaining = [case for case in remaining if case not in watch.finished]
        if end is None or not remaining:
            return outcome
        attempt = _without_culprit(attempt, watch, end, outcome, remaining, job)
        if attempt is None:
            return outcome
    outcome.problem = f"{job.operator}: gave up after {_MAX_RESTARTS} workers died"
    return outcome


@dataclass(frozen=True)
class _End:
    """How a worker ended before its job did."""

    failure: Failure
    reason: str


class _Watch:
    """Takes a worker's events; maps its case numbers to the sweep's."""

    def __init__(self, cases: list[int], outcome: Outcome, job: Job, progress: Callable[[Progress], None]) -> None:
        self.cases = list(cases)
        self.finished: set[int] = set()
        self.last = Phase("start", 180.0)
        self.dying = ""
        self.ready = False
        self._outcome, self._job, self._progress = outcome, job, progress
        self._total = (max(cases) + 1 if cases else 0) * len(job.implementations)

    def take(self, event: Event) -> None:
        match event:
            case Ready():
                self.ready = True
                self._outcome.environment = event.environment
                self._outcome.ceilings = event.ceilings
            case Phase():
                self.last = event
            case Row():
                self._outcome.rows[self.cases[event.case], event.measurement.implementation] = event.measurement
            case CaseDone():
                self.finished.add(self.cases[event.case])
            case Dying():
                self.dying = event.reason
            case Done():
                for name, value in event.seconds.items():
                    self.count(name, value)
        self._progress(self._where())

    def count(self, name: str, seconds: float) -> None:
        """Add to the split of the wall time."""
        self._outcome.seconds[name] = self._outcome.seconds.get(name, 0.0) + seconds

    def _where(self) -> Progress:
        last = self.last
        return Progress(
            operator=self._job.operator,
            phase=last.name,
            case=self.cases[last.case] if last.case >= 0 else 0,
            cases=max(self.cases, default=-1) + 1,
            implementation=last.implementation,
            rows=len(self._outcome.rows),
            rows_expected=self._total,
        )


def _without_culprit(
    attempt: Job, watch: _Watch, end: _End, outcome: Outcome, remaining: list[int], job: Job
) -> Job | None:
    """The job that goes on after a worker's end, or None when nothing can."""
    left = msgspec.structs.replace(attempt, cases=tuple(job.cases[case] for case in remaining))
    culprit = watch.last.implementation
    if culprit:
        where = f"in {watch.last.name}" + (f" of {_label(job, watch)}" if watch.last.case >= 0 else "")
        reason = f"{end.reason} {where}"
        for case in remaining:
            outcome.rows[case, culprit] = _failed(job, case, culprit, end.failure, reason)
        return msgspec.structs.replace(
            left,
            implementations=tuple(name for name in attempt.implementations if name != culprit),
            solo=False,
        )
    if watch.ready and watch.last.case >= 0 and not attempt.solo:
        return msgspec.structs.replace(left, solo=True)
    outcome.problem = f"{job.operator}: the worker ended in phase {watch.last.name!r}: {end.reason}"
    for case in remaining:
        for name in attempt.implementations:
            outcome.rows.setdefault((case, name), _failed(job, case, name, end.failure, outcome.problem))
    return None


def _label(job: Job, watch: _Watch) -> str:
    dtype, shape = job.cases[watch.cases[watch.last.case]]
    return dtype + " " + ",".join(f"{name}={value}" for name, value in shape)


def _failed(job: Job, case: int, name: str, failure: Failure, reason: str) -> Measurement:
    dtype, shape = job.cases[case]
    return Measurement(
        implementation=name, dtype=dtype, shape=dict(shape), status="failed", failure=failure, reason=reason
    )


def _run_worker(job: Job, worker: Worker, watch: _Watch) -> _End | None:
    """One worker from its job to its end; None when it did all its work."""
    try:
        listening = worker.lines(lambda: watch.last.limit) if worker.hand_over(job) else ()
        for line in listening:
            if line is None:
                return _End("timeout", f"no sign of life for {watch.last.limit:.0f} s")
            watch.take(decode_event(line))
        done = monotonic()
        status = worker.process.wait()
        watch.count("exit", monotonic() - done)
        return None if status == 0 else _end(status, watch, worker.last_words())
    finally:
        if worker.process.poll() is None:
            worker.kill()
        worker.close()


def _end(status: int, watch: _Watch, said: str) -> _End:
    if watch.dying:
        return _End("crash", watch.dying)
    if status < 0:
        name = signal.Signals(-status).name
        failure: Failure = "oom" if name == "SIGKILL" else "crash"
        hint = " (killed: out of memory?)" if name == "SIGKILL" else ""
        return _End(failure, f"the worker died of {name}{hint}" + (f": {said}" if said else ""))
    return _End("crash", said or f"the worker exited with status {status}")
