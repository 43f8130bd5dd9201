"""What a call takes of the GPU's energy: its driver's own counter over a loop of calls, at least a second of it.

The counter (NVML's total energy consumption, in millijoules) moves in steps, some tens of milliseconds apart, so it is
read from one of its steps to another; power is what it gained over the time between them. The device runs call after
call meanwhile, its caches as they come, and never waits for the host's readings: several batches are on their way at
any time. Energy a call is power over calls a second, the idle draw of the whole board included.

Where issuing a call takes the host longer than running it takes the device, the device idles in between, and that is
part of what the call costs; ``busy`` says how much of the time it worked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

from groundspeed.measure.timers.base import Run

_SETTLE = 0.3  # seconds for power and clocks to come to what they are under this load
_LEAST = 1.0  # seconds between the steps that count
_MOST = 5.0
_BATCH_NS = 5e6
_BATCHES = 4  # on their way at once
_NAP = 0.0005


@dataclass(frozen=True)
class Energy:
    """Of one call. ``busy`` is the share of the time in which the device worked, by the call's own hot device time."""

    nanojoules: float
    watts: float
    calls_per_second: float
    seconds: float
    busy: float

    def __str__(self) -> str:
        return (
            f"energy over {self.seconds:.2f} s of calls back to back: {self.watts:.0f} W, "
            f"{self.calls_per_second:,.0f} calls/s, device busy {100 * self.busy:.0f} %, caches as they come"
        )


@dataclass(frozen=True)
class Loop:
    """What was seen while the loop ran: the counter's steps as (seconds, mJ), and batches as (seconds, event) ended."""

    steps: list[tuple[float, int]]
    ended: list[tuple[float, Any]]
    batch: int


class NoEnergy(Exception):
    """Why there is no figure."""


def measure_energy(run: Run, read_mj: Callable[[], int], hot_ns: float, host_ns: float) -> Energy:
    """Run calls back to back and read the counter. Raises NoEnergy with the reason.

    ``hot_ns`` and ``host_ns`` are how long the device takes for a call and the host to issue it.
    """
    import torch

    batch = max(1, round(_BATCH_NS / max(hot_ns, host_ns, 1.0)))

    def issue() -> Any:
        for _ in range(batch):
            run()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    try:
        loop = watch(issue, read_mj, batch, 5e-9 * batch * max(hot_ns, host_ns))
    finally:
        torch.cuda.synchronize()
    return derive(loop, hot_ns)


def watch(
    issue: Callable[[], Any],
    read_mj: Callable[[], int],
    batch: int,
    longest: float = 0.0,
    now: Callable[[], float] = perf_counter,
    nap: Callable[[float], None] = sleep,
) -> Loop:
    """Keep batches on their way and note each step of the counter, until its steps span long enough.

    ``longest`` raises the limit of seconds after which it stops in any case.
    """
    started, last = now(), read_mj()
    loop = Loop([], [], batch)
    under_way: deque[Any] = deque()
    while True:
        while len(under_way) < _BATCHES:
            under_way.append(issue())
        value, moment = read_mj(), now()
        if value != last and moment - started >= _SETTLE:
            loop.steps.append((moment, value))
        last = value
        while under_way and under_way[0].query():
            loop.ended.append((moment, under_way.popleft()))
        if loop.steps and loop.steps[-1][0] - loop.steps[0][0] >= _LEAST:
            return loop
        if moment - started > max(_MOST, longest):
            return loop
        nap(_NAP)


def derive(loop: Loop, hot_ns: float) -> Energy:
    """The energy of a call. Raises NoEnergy where the counter stood still or too few batches ended."""
    if len(loop.steps) < 2 or loop.steps[-1][1] <= loop.steps[0][1]:
        raise NoEnergy(f"NVML's energy counter moved {len(loop.steps)} times in {_MOST:g} s")
    (first, least), (last, most) = loop.steps[0], loop.steps[-1]
    within = [event for moment, event in loop.ended if first <= moment <= last]
    if len(within) < 2:
        raise NoEnergy(f"{len(within)} batches of calls ended in {last - first:.2f} s")
    rate = loop.batch * (len(within) - 1) / (within[0].elapsed_time(within[-1]) * 1e-3)
    watts = (most - least) * 1e-3 / (last - first)
    return Energy(watts / rate * 1e9, watts, rate, last - first, min(1.0, hot_ns * 1e-9 * rate))
