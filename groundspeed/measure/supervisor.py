"""The supervisor: runs a worker, listens, and when it dies goes on without the implementation that killed it.

What the worker finished stays. A crash, a hang or a lost device while one implementation had the floor is that
implementation's failure; one while all were being timed together is found by timing them one at a time.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO

import msgspec

from groundspeed.measure.protocol import CaseDone, Done, Dying, Event, Job, Phase, Ready, Row, decode_event
from groundspeed.records import Ceilings, Environment, Failure, Measurement

_MAX_RESTARTS = 40
_GRACE = 5.0
_LOG_TAIL = 4000


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


def supervise(job: Job, environment: dict[str, str], progress: Callable[[Progress], None]) -> Outcome:
    """Run a job to its end, through as many workers as it takes."""
    outcome = Outcome()
    remaining = list(range(len(job.cases)))
    attempt: Job | None = job
    for _ in range(_MAX_RESTARTS):
        assert attempt is not None
        watch = _Watch(remaining, outcome, attempt, progress)
        end = _run_worker(attempt, environment, watch)
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
                    self._outcome.seconds[name] = self._outcome.seconds.get(name, 0.0) + value
        self._progress(self._where())

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


def _run_worker(job: Job, environment: dict[str, str], watch: _Watch) -> _End | None:
    """One worker from start to end; None when it did all its work."""
    receive, send = os.pipe()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "groundspeed.measure.worker", str(send)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(send,),
            env=environment,
            start_new_session=True,  # so that a hang's children are killed with it
        )
        os.close(send)
        try:
            hung = _converse(process, job, receive, watch)
        except BaseException:
            _kill(process)
            raise
        finally:
            os.close(receive)
        if hung:
            _kill(process)
            return _End("timeout", hung)
        status = process.wait()
        return None if status == 0 else _end(status, watch, log)


def _converse(process: subprocess.Popen[bytes], job: Job, receive: int, watch: _Watch) -> str:
    """Hand over the job and listen until the pipe closes. Returns why the worker was given up, or nothing."""
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(job))
        process.stdin.close()
    except BrokenPipeError:
        return ""  # it died at once: its exit status says how
    selector = selectors.DefaultSelector()
    selector.register(receive, selectors.EVENT_READ)
    for line in _lines(receive, selector, watch):
        if line is None:
            return f"no sign of life for {watch.last.limit:.0f} s"
        watch.take(decode_event(line))
    return ""


def _lines(receive: int, selector: selectors.BaseSelector, watch: _Watch) -> Iterator[bytes | None]:
    """Lines as they come; None once when the current phase has outlived its limit."""
    pending = b""
    heard = monotonic()
    while True:
        left = watch.last.limit - (monotonic() - heard)
        if left <= 0:
            yield None
            return
        if not selector.select(timeout=left):
            continue
        chunk = os.read(receive, 1 << 16)
        if not chunk:
            return
        heard = monotonic()
        *whole, pending = (pending + chunk).split(b"\n")
        yield from whole


def _end(status: int, watch: _Watch, log: IO[bytes]) -> _End:
    if watch.dying:
        return _End("crash", watch.dying)
    said = _last_words(log)
    if status < 0:
        name = signal.Signals(-status).name
        failure: Failure = "oom" if name == "SIGKILL" else "crash"
        hint = " (killed: out of memory?)" if name == "SIGKILL" else ""
        return _End(failure, f"the worker died of {name}{hint}" + (f": {said}" if said else ""))
    return _End("crash", said or f"the worker exited with status {status}")


def _last_words(log: IO[bytes]) -> str:
    """The last line of the log that is not blank."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _LOG_TAIL))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the worker and whatever it started; its session is its own, so nobody else is hit."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait(timeout=_GRACE)


def worker_environment(extra: dict[str, str]) -> dict[str, str]:
    """This process's environment with the package on the path, whether or not it is installed."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        **extra,
    }
