"""Workers that follow a script: what the supervisor does with them is tested in milliseconds, without torch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import msgspec

from groundspeed.measure import supervisor
from groundspeed.measure.process import StartedProcess, Worker
from groundspeed.measure.protocol import CaseDone, Done, Event, Job, Phase, Ready, Row
from groundspeed.records import Environment, Measurement

PREAMBLE = """
import os, signal, sys, time
out = os.fdopen(int(sys.argv[1]), 'wb', buffering=0)
job = sys.stdin.buffer.read()
"""


def start(code: str) -> Worker:
    """As ``start_worker`` does, with another program: ``out`` is its end of the pipe, ``job`` what it was handed."""
    events, send = os.pipe()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - the worker closes it
    process = StartedProcess(
        [sys.executable, "-S", "-c", PREAMBLE + code, str(send)],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(send,),
        start_new_session=True,
    )
    os.close(send)
    return Worker(process, events, log)


def script(*steps: Event | str) -> str:
    """A program that sends events and, for a string, runs it."""
    return "\n".join(step if isinstance(step, str) else f"out.write({_line(step)!r})" for step in steps)


def _line(event: Event) -> bytes:
    return msgspec.json.encode(event) + b"\n"


READY = Ready(Environment("cpu", "A CPU", "3.11.2", "Linux 6"))
DIE = "os.kill(os.getpid(), signal.SIGSEGV)"


def row(case: int, name: str) -> Row:
    return Row(case, Measurement(name, "float32", {"N": case}, "ok"))


def phase(name: str, case: int = -1, implementation: str = "") -> Phase:
    return Phase(name, 60.0, case, implementation)


def whole(cases: int, *names: str) -> str:
    """A worker that does all its work."""
    rows = [row(case, name) for case in range(cases) for name in names]
    return script(READY, *rows, *map(CaseDone, range(cases)), Done({"time": 1.0}))


def supervise(monkeypatch, job: Job, scripts: Sequence[str]) -> tuple[supervisor.Outcome, list[Job]]:
    """Run a job through workers with these scripts, and say what each was asked to do."""
    waiting = iter(scripts)
    asked: list[Job] = []

    def start_next(environment: dict[str, str]) -> Worker:
        return start(next(waiting))

    def remember(self: Worker, job: Job) -> bool:
        asked.append(job)
        return hand_over(self, job)

    hand_over = Worker.hand_over
    monkeypatch.setattr(supervisor, "start_worker", start_next)
    monkeypatch.setattr(Worker, "hand_over", remember)
    outcome = supervisor.supervise(job, {}, lambda progress: None)
    assert next(waiting, None) is None, "fewer workers were started than expected"
    return outcome, asked
