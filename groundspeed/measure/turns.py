"""Autotuners of several processes that share a GPU take turns: while one times a candidate, the others wait.

What they do on the host, compiling above all, goes on side by side; that is most of what tuning costs.
"""

from __future__ import annotations

import fcntl
import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

# Where autotuners time a candidate. Triton's own and a part of Inductor's end in the first; the rest of Inductor's are
# methods of classes of which a version of torch may lack one. Torch's and Triton's internals, by name.
_TRITON = ("triton.testing", "do_bench")
_TUNER = ("triton.runtime.autotuner", "Autotuner", "_bench")
_SHORT = {"warmup": 5, "rep": 20}  # ms; Triton's own 25 and 100 of each candidate are most of the turns there are
_INDUCTOR = "torch._inductor.runtime.benchmarking"
_CLASSES = ("TritonBenchmarker", "InductorBenchmarker", "TorchProfilerBenchmarker")
_METHODS = ("benchmark_gpu", "benchmark_gpu_with_cuda_graph")
HAD, WAITED = "had turns", "waited for turns"  # what a worker's seconds call them; both are part of other phases
_LOOK = 0.005  # seconds between two looks at the lock: a candidate is timed for some twenty milliseconds
_SIGN = 1.0  # seconds between two signs of life


class Turns:
    """A lock file's holder, now and then. One that has its turn may take it again inside.

    ``alive`` is called while it waits, about once a second: to wait is not to hang.

    had_s, waited_s
        Seconds that it had the turn, and that it waited for it, so far.
    """

    def __init__(self, file: Path, alive: Callable[[], None] = lambda: None) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._alive = alive
        self._mine = False
        self.had_s = self.waited_s = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and have it until the end."""
        if self._mine:
            yield  # the outer turn is had, and ends it
            return
        began = monotonic()
        self._wait()
        got = monotonic()
        self.waited_s += got - began
        self._mine = True
        try:
            yield
        finally:
            self._mine = False
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.had_s += monotonic() - got

    def _wait(self) -> None:
        told = monotonic()
        while not self._taken():
            sleep(_LOOK)
            if monotonic() - told >= _SIGN:
                self._alive()
                told = monotonic()

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def in_turn(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called only in one's turn."""

        @functools.wraps(function)
        def waiting(*arguments: Any, **named: Any) -> Any:
            with self.turn():
                return function(*arguments, **named)

        return waiting


def compiled_first(bench: Callable[..., Any]) -> Callable[..., Any]:
    """Triton's method that times a candidate, which is compiled before it: by itself that happens in the turn."""

    @functools.wraps(bench)
    def compiling(tuner: Any, *arguments: Any, config: Any, **named: Any) -> Any:
        # What cannot be compiled fails again when it is to be timed, and there the tuner knows what to make of it.
        with suppress(Exception):
            if config.pre_hook is not None:  # it makes arguments fit the candidate: the tiles of descriptors
                config.pre_hook({**tuner.nargs, **named, **config.all_kwargs()})
            tuner.fn.run(*arguments, **{**named, **config.all_kwargs(), "warmup": True})
        return bench(tuner, *arguments, config=config, **named)

    return compiling


def _shorter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Fewer samples of a candidate where the caller does not say how many."""

    @functools.wraps(function)
    def short(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **(_SHORT | named))

    return short


def autotuners_wait(turns: Turns, compiler: bool) -> None:
    """From now on the autotuners of this process time candidates in their turn alone: Inductor's where ``compiler``.

    For a process that measures nothing: the functions are replaced for good.
    """
    places: list[tuple[Any, str]] = []
    if importlib.util.find_spec("triton") is not None:
        testing, name = importlib.import_module(_TRITON[0]), _TRITON[1]
        setattr(testing, name, _shorter(getattr(testing, name)))
        places.append((testing, name))
        tuner, method = getattr(importlib.import_module(_TUNER[0]), _TUNER[1]), _TUNER[2]
        setattr(tuner, method, compiled_first(getattr(tuner, method)))
    if compiler:
        module = importlib.import_module(_INDUCTOR)
        classes = [getattr(module, name) for name in _CLASSES if hasattr(module, name)]
        places += [(one, method) for one in classes for method in _METHODS if method in vars(one)]
    for place, name in places:
        setattr(place, name, turns.in_turn(getattr(place, name)))
