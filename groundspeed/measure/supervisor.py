"""The supervisor: runs a worker, listens, and when it dies goes on without the implementation that killed it.

What the worker finished stays. A crash, a hang or a lost device while one implementation had the floor is that
implementation's failure; one while all were being timed together is found by timing them one at a time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic

import msgspec

from groundspeed.measure.apart import is_apart, parts
from groundspeed.measure.process import Worker, start_worker
from groundspeed.measure.protocol import CaseDone, Done, Dying, Event, Job, Phase, Ready, Row, decode_event
from groundspeed.measure.workers import Workers
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

    @property
    def in_case(self) -> bool:
        """Whether a case is being measured: before the first, a worker starts, loads and reads ceilings."""
        return self.cases > 0 and self.phase not in ("start", "load", "ceilings")


@dataclass
class Outcome:
    """All that a sweep brought. ``rows`` by (case number, implementation)."""

    rows: dict[tuple[int, str], Measurement] = field(default_factory=dict)
    environment: Environment | None = None
    ceilings: Ceilings | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    problem: str = ""  # why nothing could be measured at all

    def add(self, other: Outcome) -> None:
        """Take in what another part of the job brought."""
        rows = other.rows.items()
        self.rows |= {key: msgspec.structs.replace(row, apart=True) if is_apart(key[1]) else row for key, row in rows}
        self.environment = _of_both(self.environment, other.environment)
        self.ceilings = self.ceilings or other.ceilings
        for name, seconds in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.problem = self.problem or other.problem


def _of_both(one: Environment | None, other: Environment | None) -> Environment | None:
    """The environment of two workers of a job: each knows the libraries of its own implementations."""
    if one is None or other is None:
        return one or other
    return msgspec.structs.replace(one, libraries={**one.libraries, **other.libraries})


def supervise(
    job: Job,
    environment: dict[str, str],
    progress: Callable[[Progress], None],
    first: Worker | None = None,
    workers: Workers | None = None,
) -> Outcome:
    """Run a job to its end, through as many workers as it takes, one at a time.

    first
        A worker that waits for a job already.
    workers
        Where the others come from; without it each is started anew in ``environment``.
    """
    pieces = parts(job)
    if len(pieces) == 1:
        return _supervise(job, environment, progress, first, workers)
    whole = Outcome()
    expected = len(job.cases) * len(job.implementations)
    for piece in pieces:
        done = len(whole.rows)

        def tell(where: Progress, done: int = done) -> None:
            progress(replace(where, rows=done + where.rows, rows_expected=expected))

        whole.add(_supervise(piece, environment, tell, first, workers))
        first = None
    return whole


def _supervise(
    job: Job,
    environment: dict[str, str],
    progress: Callable[[Progress], None],
    first: Worker | None,
    workers: Workers | None,
) -> Outcome:
    """Run a job all of whose implementations may share a worker."""
    outcome = Outcome()
    remaining = list(range(len(job.cases)))
    attempt: Job | None = job
    waiting = first
    for _ in range(_MAX_RESTARTS):
        assert attempt is not None
        watch = _Watch(remaining, outcome, attempt, progress)
        worker = waiting or _next_worker(environment, workers, watch)
        waiting = None
        end = _run_worker(attempt, worker, watch, (lambda: None) if workers is None else workers.check)
        remaining = [case for case in remaining if case not in watch.finished]
        if end is None or not remaining:
            return outcome
        if workers is not None and _is_nurserys(worker, watch):
            workers.distrust(f"a worker forked from it did not begin: {end.reason}")
            attempt = _narrowed(attempt, job, remaining)
        elif worker.process.lost:
            attempt = _narrowed(attempt, job, remaining)
        else:
            attempt = _without_culprit(attempt, watch, end, outcome, remaining, job)
        if attempt is None:
            return outcome
    outcome.problem = f"{job.operator}: gave up after {_MAX_RESTARTS} workers died"
    return outcome


def _next_worker(environment: dict[str, str], workers: Workers | None, watch: _Watch) -> Worker:
    """Its first seconds are those of starting: a nursery may still be at its imports."""
    began = monotonic()
    worker = start_worker(environment) if workers is None else workers.start()
    watch.count("start", monotonic() - began)
    return worker


def _is_nurserys(worker: Worker, watch: _Watch) -> bool:
    """Whether a worker's end may be due to its having been forked: it said nothing of its own before it."""
    return worker.process.forked and not watch.ready and not watch.dying


def _narrowed(attempt: Job, job: Job, remaining: list[int]) -> Job:
    """An attempt at these cases of the job alone, whose numbers are those of the job."""
    return msgspec.structs.replace(
        attempt,
        cases=tuple(job.cases[case] for case in remaining),
        energy=tuple(number for number, case in enumerate(remaining) if case in job.energy),
    )


@dataclass(frozen=True)
class End:
    """How a worker ended before its job did; an error is what it told of itself, and says all there is to say."""

    failure: Failure
    reason: str


class _Watch:
    """Takes a worker's events; maps its case numbers to the sweep's."""

    def __init__(self, cases: list[int], outcome: Outcome, job: Job, progress: Callable[[Progress], None]) -> None:
        self.cases = list(cases)
        self.finished: set[int] = set()
        self.last = Phase("start", 180.0)
        self.dying: Dying | None = None
        self.ready = self.done = False
        self._outcome, self._job, self._progress = outcome, job, progress
        self._total = (max(cases) + 1 if cases else 0) * len(job.implementations)

    def take(self, event: Event) -> None:
        match event:
            case Ready():
                self.ready = True
                self._outcome.environment = _of_both(self._outcome.environment, event.environment)
                self._outcome.ceilings = event.ceilings
            case Phase():
                self.last = event
            case Row():
                self._outcome.rows[self.cases[event.case], event.measurement.implementation] = event.measurement
            case CaseDone():
                self.finished.add(self.cases[event.case])
            case Dying():
                self.dying = event
            case Done():
                self.done = True
                for name, value in event.seconds.items():
                    self.count(name, value)
        self._progress(self._where())

    @property
    def limit(self) -> float:
        """Seconds that the phase it is in may be silent."""
        return self._job.limits.get(self.last.name, self.last.limit)

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
    attempt: Job, watch: _Watch, end: End, outcome: Outcome, remaining: list[int], job: Job
) -> Job | None:
    """The job that goes on after a worker's end, or None. A case that is given up is taken from ``remaining``."""
    culprit = watch.last.implementation
    where = f"in {watch.last.name}" + (f" of {_label(job, watch)}" if watch.last.case >= 0 else "")
    names, solo = attempt.implementations, False
    if culprit:
        names = tuple(name for name in names if name != culprit)
        reason = end.reason if end.failure == "error" else f"{end.reason} {where}"
        for case in remaining:
            outcome.rows[case, culprit] = _failed(job, case, culprit, end.failure, reason)
    elif watch.last.case < 0:
        outcome.problem = f"{job.operator}: the worker ended {where}: {end.reason}"
        _give_up(job, names, remaining, end.failure, outcome.problem, outcome)
        return None
    elif watch.last.name == "inputs" or (attempt.solo and watch.last.case == 0):
        # The spec's own code, or one that passes alone and not beside the others: the case is lost, not the sweep.
        alone = "" if watch.last.name == "inputs" else ", although each implementation passed alone"
        lost = remaining.pop(0)
        _give_up(job, names, [lost], end.failure, f"{end.reason} {where}{alone}", outcome)
    else:
        solo = True
    if not names or not remaining:
        return None
    return msgspec.structs.replace(_narrowed(attempt, job, remaining), implementations=names, solo=solo)


def _give_up(
    job: Job, names: tuple[str, ...], cases: list[int], failure: Failure, reason: str, outcome: Outcome
) -> None:
    for case in cases:
        for name in names:
            outcome.rows.setdefault((case, name), _failed(job, case, name, failure, reason))


def _label(job: Job, watch: _Watch) -> str:
    dtype, shape = job.cases[watch.cases[watch.last.case]]
    return dtype + " " + ",".join(f"{name}={value}" for name, value in shape)


def _failed(job: Job, case: int, name: str, failure: Failure, reason: str) -> Measurement:
    dtype, shape = job.cases[case]
    return Measurement(
        implementation=name, dtype=dtype, shape=dict(shape), status="failed", failure=failure, reason=reason
    )


def _run_worker(job: Job, worker: Worker, watch: _Watch, check: Callable[[], None]) -> End | None:
    """One worker from its job to its end; None when it did all its work. What ``check`` raises, at times, ends it."""

    def limit() -> float:
        check()
        return watch.limit

    try:
        listening = worker.lines(limit) if worker.hand_over(job) else ()
        for line in listening:
            if line is None:
                return End("timeout", f"no sign of life for {watch.limit:.0f} s")
            watch.take(decode_event(line))
        silent = monotonic()
        status = worker.wait()
        watch.count("exit", monotonic() - silent)
        if watch.done:
            return None
        if watch.dying is not None:
            return End(watch.dying.failure, watch.dying.reason)
        return how_it_ended(status, "", worker.last_words())
    finally:
        worker.kill()


def how_it_ended(status: int | None, dying: str, said: str) -> End:
    """From a worker's exit status (None: it does not end), the reason it gave itself, and the last line of its log."""
    if dying:
        return End("crash", dying)
    if status is None:
        return End("timeout", "the worker fell silent and did not end")
    if status < 0:
        name = signal.Signals(-status).name
        failure: Failure = "oom" if name == "SIGKILL" else "crash"
        hint = " (killed: out of memory?)" if name == "SIGKILL" else ""
        return End(failure, f"the worker died of {name}{hint}" + (f": {said}" if said else ""))
    return End("crash", f"the worker exited with status {status} too early" + (f": {said}" if said else ""))
