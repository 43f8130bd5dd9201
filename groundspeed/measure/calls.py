"""What a call costs the host, and what it takes of the device's memory: passes of their own beside the timed one."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.autograd import profiler

from groundspeed.measure.kept import nbytes
from groundspeed.measure.referee import synchronize
from groundspeed.measure.timers.base import Run

LEAST_ROUNDS = 8  # with fewer the gate has no median of a process, and would pass a call for having become slow


def call_samples(
    runs: Sequence[Run],
    rounds: int,
    device: str,
    seconds: float = math.inf,
    together: Callable[[], object] = lambda: None,
) -> list[list[tuple[float, float]]]:
    """For each run its (call, host) nanoseconds a round: until the device is done, and until the host is.

    Runs alternate as in the timed rounds, forth and back. No round begins after ``seconds``, LEAST_ROUNDS taken.
    ``together`` is waited for before each call: ranks meet in it.
    """
    began = time.monotonic()
    samples: list[list[tuple[float, float]]] = [[] for _ in runs]
    order = list(range(len(runs)))
    for taken in range(rounds):
        if taken >= LEAST_ROUNDS and time.monotonic() - began > seconds:
            break
        for index in order:
            run = runs[index]
            synchronize(device)
            together()
            start = time.perf_counter_ns()
            output = run()
            issued = time.perf_counter_ns()
            synchronize(device)
            done = time.perf_counter_ns()
            del output
            samples[index].append((float(done - start), float(issued - start)))
        order.reverse()
    return samples


def peak_memory(run: Run, device: str) -> int:
    """Most bytes of torch's allocator that one call holds at once above what was there, its output included."""
    return _cuda_peak(run) if device == "cuda" else _cpu_peak(run)


def _cuda_peak(run: Run) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    output = run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    del output
    return int(peak - before)


def _cpu_peak(run: Run) -> int:
    """torch's profiler sees each allocation and release of its CPU allocator."""
    with profiler.profile(use_cpu=True, profile_memory=True) as session:
        output = run()
    del output
    return max(itertools.accumulate(nbytes(session), initial=0))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection inside: a collection is a pause of milliseconds in somebody's sample."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
