"""A worker's process: started, given a job, listened to, ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Protocol

import msgspec

from groundspeed.errors import uncoloured
from groundspeed.measure.protocol import Job

_GRACE = 5.0
_LEAVE = 60.0  # seconds between a worker's last word and its end: CUDA's own tear-down may take some
_LOOK = 0.5
_LOG_TAIL = 4000


class Process(Protocol):
    """What is asked of a worker's process: of ``subprocess.Popen`` the members by these names, and more.

    ``forked`` tells one of a nursery's from one that was started anew. ``lost`` is set when nobody can say how it
    ended, because its nursery has ended too.
    """

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None

    @property
    def forked(self) -> bool: ...

    @property
    def lost(self) -> bool: ...

    def has_ended(self) -> bool:
        """Whether it has, its exit status still to be collected: until then its process group cannot be another's."""

    def wait(self, timeout: float | None = None) -> int: ...


class StartedProcess(subprocess.Popen[bytes]):
    """A child of this process."""

    forked = False
    lost = False

    def has_ended(self) -> bool:
        if self.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@dataclass(frozen=True)
class Worker:
    """A running worker. ``events`` is the reading end of its pipe; ``log`` takes whatever its libraries print."""

    process: Process
    events: int
    log: IO[bytes]

    def hand_over(self, job: Job) -> bool:
        """Give it its job; False when it is already dead."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(job))
            self.process.stdin.close()
        except BrokenPipeError:
            return False
        return True

    def lines(self, limit: Callable[[], float]) -> Iterator[bytes | None]:
        """Events as they come, until it ends; None at last when nothing came for ``limit()`` seconds.

        Its end is looked for beside the pipe's: a child that it forked may hold the pipe open for as long as it likes.
        """
        selector = selectors.DefaultSelector()
        selector.register(self.events, selectors.EVENT_READ)
        pending = b""
        heard = monotonic()
        while True:
            left = limit() - (monotonic() - heard)
            if left <= 0:
                yield None
                return
            ended = self.process.has_ended()
            if not selector.select(timeout=0 if ended else min(left, _LOOK)):
                if ended:
                    return
                continue
            chunk = os.read(self.events, 1 << 16)
            if not chunk:
                return
            heard = monotonic()
            *whole, pending = (pending + chunk).split(b"\n")
            yield from whole

    def wait(self) -> int | None:
        """Its exit status, or None for one that has said its last and does not end."""
        deadline = monotonic() + _LEAVE
        while not self.process.has_ended():
            if monotonic() > deadline:
                return None
            sleep(0.005)
        self.kill_group()
        return self.process.wait()

    def last_words(self) -> str:
        """The last line of the log that is not blank."""
        return last_line(self.log)

    def kill(self) -> None:
        """End it and whatever it started, and give back what it held."""
        if self.process.returncode is None:
            self.kill_group()
            self.process.wait(timeout=_GRACE)
        self.close()

    def kill_group(self) -> None:
        """Its process group is its own, so nobody else is hit; what it forked and left behind is."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give back the pipe and the log."""
        if not self.log.closed:
            os.close(self.events)
            self.log.close()


def last_line(log: IO[bytes]) -> str:
    """The last line of a log that is not blank, shortened."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _LOG_TAIL))
    text = uncoloured(log.read().decode(errors="replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""


def start_worker(environment: dict[str, str], module: str = "groundspeed.measure.worker") -> Worker:
    """Start a worker anew; it does its imports and waits for its job."""
    events, send = os.pipe()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
    process = StartedProcess(
        [sys.executable, "-m", module, str(send), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(send,),
        env=environment,
        start_new_session=True,  # so that a hang's children are killed with it
    )
    os.close(send)
    return Worker(process, events, log)


def worker_environment(extra: dict[str, str]) -> dict[str, str]:
    """This process's environment with the package on the path, whether or not it is installed."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return {
        "KINETO_LOG_LEVEL": "6",  # else its remarks on every profile are taken for a dead worker's last words
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        **extra,
    }
