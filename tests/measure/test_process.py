"""A worker's process: what is read from it, and that nothing of it stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from groundspeed.measure import process
from groundspeed.measure.protocol import Job
from tests.measure import fake_worker

JOB = Job("double", "", "", "cpu", ("a",), ())


def read(code: str, limit: float = 30.0) -> tuple[process.Worker, list[bytes | None]]:
    worker = fake_worker.start(code)
    assert worker.hand_over(JOB)
    return worker, list(worker.lines(lambda: limit))


def gone(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_lines_are_whole_however_they_arrive():
    worker, lines = read(
        "out.write(b'on'); time.sleep(0.1); out.write(b'e\\ntwo\\nthr'); time.sleep(0.1); out.write(b'ee\\nleft over')"
    )
    assert lines == [b"one", b"two", b"three"]
    assert worker.wait() == 0
    worker.kill()


def test_a_megabyte_of_events_and_of_output_blocks_nobody():
    worker, lines = read(
        "print('x' * 3_000_000); sys.stdout.flush(); [out.write(b'y' * 999 + b'\\n') for _ in range(2000)]"
    )
    assert len(lines) == 2000 and worker.wait() == 0
    assert worker.last_words() == "x" * 400
    worker.kill()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ""),
        ("print('one\\n\\ntwo  \\n \\n')", "two"),
        ("os.write(1, b'bad \\xff\\n')", "bad \ufffd"),
        ("print('\\x1b[91mred\\x1b[0m line\\n\\x1b[0m')", "red line"),
    ],
)
def test_last_words_are_the_last_line_that_says_something(code, said):
    worker, _ = read(code + "\nsys.stdout.flush()")
    worker.wait()
    assert worker.last_words() == said
    worker.kill()


def test_silence_is_told_once_and_last():
    worker, lines = read("out.write(b'one\\n'); time.sleep(600)", limit=0.4)
    assert lines == [b"one", None]
    worker.kill()
    assert worker.process.returncode == -9


def test_its_end_is_seen_although_a_child_keeps_the_pipe_open_and_the_child_is_ended():
    fork = "child = os.fork()\nif not child: time.sleep(600)\nout.write(b'%d\\n' % child); os._exit(3)\n"
    began = time.monotonic()
    worker, lines = read(fork)
    child = int(lines[0])
    assert worker.wait() == 3 and time.monotonic() - began < 20
    assert gone(child)
    worker.kill()


def test_killing_it_ends_what_it_started():
    worker = fake_worker.start("child = os.fork()\nout.write(b'%d\\n' % child) if child else None\ntime.sleep(600)")
    worker.hand_over(JOB)
    child = int(next(worker.lines(lambda: 30.0)))
    worker.kill()
    assert gone(child) and worker.process.returncode == -9 and worker.log.closed
    worker.kill()  # twice is no fault


def test_one_that_has_said_its_last_and_does_not_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(process, "_LEAVE", 0.2)
    worker, lines = read("out.close(); time.sleep(600)")
    assert lines == [] and worker.wait() is None
    worker.kill()


def test_a_job_for_one_that_is_dead_is_no_exception():
    worker = fake_worker.start("")
    worker.process.stdin.close()
    worker.process.wait()
    dead = fake_worker.start("")
    os.kill(dead.process.pid, 9)
    dead.process.wait()
    big = Job("double", "", "", "cpu", tuple(map(str, range(100_000))), ())
    assert dead.hand_over(big) is False
    for one in (worker, dead):
        one.kill()


def test_a_workers_environment_finds_the_package_and_keeps_the_callers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("KINETO_LOG_LEVEL", "3")
    environment = process.worker_environment({"TRITON_INTERPRET": "1"})
    first, second = environment["PYTHONPATH"].split(os.pathsep)
    assert (Path(first) / "groundspeed" / "measure" / "worker.py").is_file() and second == "/somewhere"
    assert environment["TRITON_INTERPRET"] == "1" and environment["KINETO_LOG_LEVEL"] == "3"
    monkeypatch.delenv("KINETO_LOG_LEVEL")
    assert process.worker_environment({})["KINETO_LOG_LEVEL"] == "6"
