"""The ranks of one world size, from the worker's side: forked, given orders in step, ended.

Every rank is sent each order and must answer it. One that dies, raises or falls silent ends the crew: what the others
are in the middle of has lost a partner, and would wait for it for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import IO, Any, NoReturn

from groundspeed.measure.bench import Fault
from groundspeed.measure.process import last_line
from groundspeed.measure.protocol import Job
from groundspeed.measure.ranks.answer import Answer
from groundspeed.measure.supervisor import how_it_ended
from groundspeed.records import Failure

Serve = Callable[[Connection, int, int, Job, int, int], NoReturn]
"""Line to the worker, file descriptor of the log, the worker's process id, job, rank and world."""

_GRACE = 10.0  # seconds at most in which the others must answer once one cannot any more


def _why(answer: Answer) -> Fault | None:
    """What is wrong with an answer: it stands for none, or it is a fault itself, and the others may wait for ever."""
    if answer.fault is not None or not answer.over:
        return answer.fault or (answer.value if isinstance(answer.value, Fault) else None)
    return Fault("crash", "it ended")


class RankLost(Exception):
    """A rank died, raised or fell silent, and the crew is over."""

    def __init__(self, rank: int, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.rank, self.failure, self.reason = rank, failure, reason

    def fault(self, world: int) -> Fault:
        return Fault(self.failure, named(world, self.rank, self.reason))


def named(world: int, rank: int, reason: str) -> str:
    """A reason with the rank that it is of; where there is one rank only, that goes without saying."""
    return reason if world == 1 else f"rank {rank}: {reason}"


@dataclass
class _Rank:
    pid: int
    line: Connection
    log: IO[bytes]
    status: int | None = None

    def ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None


class Crew:
    """``world`` ranks, each of which calls ``serve``. They end with ``end``, and with this process at the latest."""

    def __init__(self, job: Job, world: int, serve: Serve) -> None:
        self.world = world
        self._serve = serve
        self._ranks: list[_Rank] = []
        for rank in range(world):
            self._ranks.append(self._fork(job, rank))

    def ask(self, order: str, *given: Any, limit: float, only: int | None = None) -> list[Any]:
        """Each rank's answer to an order: a method of ``desk.Desk`` by name, and what it is given.

        ``only`` asks that rank alone. Raises RankLost; the crew is over then.
        """
        asked = range(self.world) if only is None else [only]
        for rank in asked:
            try:
                self._ranks[rank].line.send((order, given))
            except OSError:
                raise self._lost(rank) from None
        answers = self._answers(set(asked), limit)
        return [answers[rank].value for rank in asked]

    def end(self) -> None:
        """End every rank that has not, and give back what it held."""
        for one in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                if not one.ended():
                    os.kill(one.pid, signal.SIGKILL)
        for one in self._ranks:
            if one.status is None:
                one.status = os.waitstatus_to_exitcode(os.waitpid(one.pid, 0)[1])
            one.line.close()
            one.log.close()
        self._ranks = []

    def _answers(self, waiting: set[int], limit: float) -> dict[int, Answer]:
        """What each answers. Once one has died or raised, the others have a moment left to answer, as they may do."""
        found: dict[int, Answer] = {}
        broken: int | None = None  # the first that died or raised
        deadline = monotonic() + limit
        while waiting:
            lines = {rank: self._ranks[rank].line for rank in waiting}
            ready = wait(list(lines.values()), timeout=max(0.0, deadline - monotonic()))
            if not ready:
                break
            for rank in [rank for rank, line in lines.items() if line in ready]:
                waiting.discard(rank)
                try:
                    found[rank] = lines[rank].recv()
                except (EOFError, OSError):
                    found[rank] = Answer(over=True)
                if _why(found[rank]) is not None and broken is None:
                    broken, deadline = rank, min(deadline, monotonic() + min(_GRACE, limit / 4))
        dead = [rank for rank, answer in found.items() if answer.over and answer.fault is None]
        if dead:  # whatever others raised, they raised because of it
            raise self._lost(dead[0])
        if broken is not None and (waiting or any(answer.fault for answer in found.values())):
            why = _why(found[broken])
            assert why is not None
            self.end()
            raise RankLost(broken, why.failure or "error", why.reason)
        if waiting:
            silent = min(waiting)
            self.end()
            others = f", although rank {min(found)} was done" if found else ""
            raise RankLost(silent, "timeout", f"no answer within {limit:.0f} s{others}")
        return found

    def _lost(self, rank: int) -> RankLost:
        """How a rank ended whose line is closed."""
        one = self._ranks[rank]
        deadline = monotonic() + 5.0
        while not one.ended() and monotonic() < deadline:
            wait([one.line], timeout=0.01)
        end = how_it_ended(one.status, "", last_line(one.log))
        self.end()
        return RankLost(rank, end.failure, end.reason.replace("the worker", "it"))

    def _fork(self, job: Job, rank: int) -> _Rank:
        ours, theirs = Pipe()
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the rank
        parent, world = os.getpid(), self.world
        strangers: Sequence[Callable[[], None]] = [ours.close, *(one.line.close for one in self._ranks)]
        pid = os.fork()
        if pid == 0:
            try:
                for close in strangers:  # else a line would stay open when the worker's end of it is closed
                    close()
                self._serve(theirs, log.fileno(), parent, job, rank, world)
            except BaseException as error:
                os.write(log.fileno(), f"{type(error).__name__}: {error}\n".encode())  # the worker reads the last line
                raise
            finally:
                os._exit(1)
        theirs.close()
        return _Rank(pid, ours, log)
