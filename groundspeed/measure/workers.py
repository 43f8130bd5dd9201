"""Where the workers of a run come from."""

from __future__ import annotations

from threading import Event, RLock
from types import TracebackType
from typing import Self

from groundspeed.measure.forked import Nursery, NurseryLost, supported
from groundspeed.measure.preload import Imports
from groundspeed.measure.process import Worker, start_worker


class Stopped(Exception):
    """The run is being ended: no result is wanted any more."""


class Workers:
    """Workers in one environment, forked from a nursery while that can be trusted, else started anew.

    compiler
        Whether the nursery imports the compiler behind torch.compile too.
    nursery
        Whether there is one at all: for a single worker it is no gain.
    why_not
        Why no nursery is used any more; empty while one is.
    remarks
        What makes starting workers take longer than it might, and why, a line each.

    Use it as a context manager: the nursery ends with it.
    """

    def __init__(self, environment: dict[str, str], compiler: bool = True, nursery: bool = True) -> None:
        self.environment = environment
        self.why_not = "" if nursery else "not asked for"
        self.remarks: list[str] = []
        # Another is tried when one is lost: without the compiler, whose imports are the larger part of the risk.
        self._plans: list[Imports] = ["compiler", "front end"] if compiler else ["work", "work"]
        self._nursery: Nursery | None = None
        self._stopped = Event()
        self._lock = RLock()
        if nursery and not supported():
            self._give_up("this system has no process handles")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._end_nursery()

    def warm_up(self) -> None:
        """Begin a nursery's imports, and do not wait for them."""
        with self._lock:
            if not self.why_not and self._nursery is None:
                self._nursery = Nursery(self.environment, self._plans[0])

    def stop(self) -> None:
        """End what is being measured, from another thread: ``check`` raises from now on."""
        self._stopped.set()
        nursery = self._nursery  # without the lock, which whoever waits for the nursery's imports holds
        if nursery is not None:
            nursery.abandon()

    def check(self) -> None:
        """Raise Stopped when the run is being ended."""
        if self._stopped.is_set():
            raise Stopped

    def start(self) -> Worker:
        """A worker that does its imports, or has done them, and waits for its job."""
        self.check()
        with self._lock:
            while not self.why_not:
                self.warm_up()
                self.check()  # here: a stop that this misses finds the nursery and ends its imports
                assert self._nursery is not None
                try:
                    return self._nursery.fork()
                except NurseryLost as lost:
                    self._end_nursery()
                    self._plan_again(str(lost))
        return start_worker(self.environment)

    def distrust(self, why: str) -> None:
        """Start workers anew from now on: one that was forked did not even begin."""
        with self._lock:
            self._end_nursery()
            self._give_up(why)

    def _plan_again(self, why: str) -> None:
        lost = self._plans.pop(0)
        if not self._plans:
            self._give_up(why)
        elif lost == "compiler":
            need = "those that need them take longer"
            self.remarks.append(f"workers begin without torch.compile's imports, {need}: {why}")
        else:
            self.remarks.append(f"the process that workers are forked from had to be started again: {why}")

    def _give_up(self, why: str) -> None:
        self.why_not = why
        self.remarks.append(f"each worker does its own imports, which takes longer: {why}")

    def _end_nursery(self) -> None:
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
