"""A nursery's other end: workers forked from a process that has the imports behind it, which takes milliseconds.

Starting a worker anew takes the seconds of ``import torch``, once an operator and again after each crash.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from threading import Lock
from time import monotonic
from typing import IO

import msgspec

from groundspeed.measure.nursery_protocol import (
    MOST_BYTES,
    Answer,
    Collect,
    Collected,
    Fork,
    Forked,
    Request,
    Serving,
    decode_answer,
)
from groundspeed.measure.preload import Imports
from groundspeed.measure.process import Worker, last_line

_IMPORTS = 180.0  # seconds: from a cold disk they have taken ten
_ANSWERS = 30.0
_GRACE = 5.0


class NurseryLost(Exception):
    """The nursery ended, or refuses to fork: the message says why."""


def supported() -> bool:
    """Whether this system has what a nursery needs: a handle on a process that is no child, and packets on a socket."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


class ForkedProcess:
    """A worker's process that a nursery forked: the nursery's child, watched through a handle of the kernel's."""

    forked = True

    def __init__(self, nursery: Nursery, pid: int, stdin: IO[bytes]) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = stdin
        self.returncode: int | None = None
        self.lost = False
        self._nursery = nursery
        self._handle = os.pidfd_open(pid)

    def has_ended(self) -> bool:
        return self.returncode is not None or bool(_readable(self._handle, 0.0))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, as subprocess has it. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not _readable(self._handle, timeout):
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
            try:
                self.returncode = self._nursery.collect(self.pid)
            except NurseryLost:
                # It went down with its nursery, whose end the kernel answers by killing it: of nobody's fault.
                self.lost, self.returncode = True, -signal.SIGKILL
            os.close(self._handle)
        return self.returncode


class Nursery:
    """A running nursery. It ends with this object's ``close``, and with this process however that ends."""

    def __init__(self, environment: dict[str, str], imports: Imports) -> None:
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = Lock()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the nursery
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "groundspeed.measure.nursery", str(end.fileno()), imports],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                pass_fds=(end.fileno(),),
                env=environment,
                start_new_session=True,  # Ctrl-C is for the supervisor
            )
        self._serving = False

    def fork(self) -> Worker:
        """A worker that waits for its job. Raises NurseryLost."""
        self._wait_for_imports()
        events, send = os.pipe()
        jobs, stdin = os.pipe()
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        try:
            answer = self._ask(Fork(), (jobs, send, log.fileno()))
            assert isinstance(answer, Forked)
            return Worker(ForkedProcess(self, answer.pid, os.fdopen(stdin, "wb")), events, log)
        except BaseException:
            os.close(events)
            os.close(stdin)
            log.close()
            raise
        finally:
            os.close(jobs)
            os.close(send)

    def collect(self, pid: int) -> int:
        """The exit status of a worker that has ended. Raises NurseryLost."""
        answer = self._ask(Collect(pid))
        assert isinstance(answer, Collected)
        return answer.status

    def abandon(self) -> None:
        """End it if it is still at its imports: from another thread, for one that waits for them."""
        if not self._serving:
            self._process.kill()

    def close(self) -> None:
        """End it, and with it whatever it forked."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _wait_for_imports(self) -> None:
        with self._lock:
            if self._serving:
                return
            first = self._receive(monotonic() + _IMPORTS)
        if isinstance(first, Serving) and first.refusal:
            raise NurseryLost(first.refusal)
        self._serving = True

    def _ask(self, request: Request, descriptors: tuple[int, ...] = ()) -> Answer:
        with self._lock:
            try:
                socket.send_fds(self._socket, [msgspec.json.encode(request)], descriptors)
            except OSError as error:
                raise NurseryLost(self._how_it_ended()) from error
            return self._receive(monotonic() + _ANSWERS)

    def _receive(self, deadline: float) -> Answer:
        if not _readable(self._socket.fileno(), max(0.0, deadline - monotonic())):
            raise NurseryLost("it does not answer")
        try:
            data = self._socket.recv(MOST_BYTES)
        except OSError as error:
            raise NurseryLost(self._how_it_ended()) from error
        if not data:
            raise NurseryLost(self._how_it_ended())
        return decode_answer(data)

    def _how_it_ended(self) -> str:
        if self._log.closed:
            return "it was closed"
        try:
            status = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return "it closed its end"
        said = last_line(self._log)
        return f"it ended with status {status}" + (f": {said}" if said else "")


def _readable(descriptor: int, timeout: float | None) -> bool:
    """Whether there is something to read, waiting so many seconds for it; None waits for ever."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout is None else 1000 * timeout))
