"""One process of a calibration: ``python -m groundspeed.calibrate.child FD PARENT``.

The task is the first line on standard input; each later line is a go. Events go to the file descriptor FD.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import msgspec

from groundspeed.calibrate.methods import CannotTime
from groundspeed.calibrate.probes import Probe, Run, named
from groundspeed.calibrate.protocol import GO, Done, Event, Found, Loaded, Loading, Ready, Step, Task
from groundspeed.calibrate.schema import Clocked, Cost, Missing, Ratio, Reading
from groundspeed.cores import cpu_threads
from groundspeed.errors import first_line, kind_and_line
from groundspeed.measure.worker import end_with
from groundspeed.records import Ceilings

if TYPE_CHECKING:
    from groundspeed.measure.timers.base import Timer

Figure = Reading | Ratio | Cost | Ceilings | Missing

_ROOM = 4  # times a probe's inputs must fit what is free: inputs, outputs, another's


def main() -> NoReturn:
    began = perf_counter()
    end_with(int(sys.argv[2]))
    os.set_inheritable(int(sys.argv[1]), False)
    stream = os.fdopen(int(sys.argv[1]), "wb")
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    _Child(task, stream, sys.stdin.buffer, began).run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # torch's tear-down would cost the next process a second


class _Child:
    """Does a task, in the order that the protocol asks for."""

    def __init__(self, task: Task, events: BinaryIO, goes: BinaryIO, began: float) -> None:
        self._task, self._events, self._goes = task, events, goes
        self._mark = began
        self._seconds: dict[str, float] = {}

    def run(self) -> None:
        import torch

        from groundspeed.measure.environment import describe, gpu_handle

        task = self._task
        torch.set_grad_enabled(False)
        if task.device == "cpu":
            torch.set_num_threads(cpu_threads())
        torch.zeros(1, device=task.device)
        environment = describe(task.device)
        gpu = gpu_handle(task.device)
        self._passed("start")
        self._tell(Ready(environment))
        self._wait_for_go()
        self._peers()
        self._passed("peers")
        self._tell(Loading())
        from groundspeed.calibrate import ours
        from groundspeed.calibrate.costs import costs
        from groundspeed.measure.gpu_state import summary

        timers = ours.load(task.device, task.beside)
        self._passed("load")
        self._tell(Loaded(timers.main.name))
        self._wait_for_go()
        self._tell(Found(missing=timers.missing))
        readings = []
        for probe, run in self._probes():
            for method, read in ours.passes(timers, probe, run, task.device, task.rounds, task.process):
                self._collect(read, method, probe.name)
                if gpu and method == timers.main.name:  # at once: its clocks go up again in some milliseconds
                    readings.append(now := gpu.read())
                    seen = Clocked(probe.name, task.process, now.sm_mhz, round(now.power_w, 1), now.throttle)
                    self._tell(Found(clocked=(seen,)))
        self._passed("probes")
        self._collect(lambda: self._costs(costs(task.device, timers.main, timers.beside)), "costs")
        self._passed("costs")
        if task.device == "cuda" and task.beside:
            self._collect(lambda: _ceilings(timers.main), "ceilings")
            self._passed("ceilings")
        self._tell(Done(self._seconds, summary(readings)))

    def _peers(self) -> None:
        from groundspeed.calibrate import nvbench, peers

        if not self._task.peers:
            return
        runs: dict[str, Run] = {}
        for probe, run in self._probes():
            runs[probe.name] = run
            for method in self._task.peers:
                if method in peers.ONE_BY_ONE:
                    self._collect(partial(self._one_by_one, method, probe, run), method, probe.name)
        if nvbench.METHOD in self._task.peers:
            self._collect(lambda: nvbench.measure(runs, self._task.process), nvbench.METHOD)

    def _one_by_one(self, method: str, probe: Probe, run: Run) -> Iterator[Reading]:
        from groundspeed.calibrate.ours import reading
        from groundspeed.calibrate.peers import ONE_BY_ONE

        start = perf_counter()
        samples = ONE_BY_ONE[method](run)
        yield reading(method, probe.name, self._task.process, samples, perf_counter() - start)

    def _costs(self, found: dict[str, float]) -> Iterator[Cost]:
        return (Cost(name, self._task.process, value) for name, value in found.items())

    def _probes(self) -> Iterator[tuple[Probe, Run]]:
        """Each probe of the task with its call, those left out that the device's memory cannot hold."""
        import torch

        from groundspeed.measure.environment import free_memory

        if self._task.device == "cuda":
            torch.cuda.empty_cache()  # what torch holds back does not count as free
        for probe in named(self._task.device, self._task.probes):
            free = free_memory(self._task.device)
            if _ROOM * probe.input_bytes > free:
                why = f"needs {_ROOM} × {probe.input_bytes / 2**20:.0f} MiB, {free / 2**20:.0f} are free"
                self._tell(Found(missing=(Missing("", why, probe.name, self._task.process),)))
                continue
            yield probe, probe.make(self._task.device)

    def _collect(self, produce: Callable[[], Iterable[Figure]], method: str, probe: str = "") -> None:
        """Tell of what is found as it comes; what raises has no more figures, and says why."""
        self._tell(Step(method))
        try:
            for one in produce():
                self._tell(_found(one))
        except Exception as error:
            shown = (first_line(error) if isinstance(error, CannotTime) else kind_and_line(error))[:300]
            self._tell(Found(missing=(Missing(method, shown, probe, self._task.process),)))

    def _tell(self, event: Event) -> None:
        self._events.write(msgspec.json.encode(event) + b"\n")
        self._events.flush()

    def _wait_for_go(self) -> None:
        if self._goes.readline() != GO:
            os._exit(0)  # the parent has no more use for this process
        self._mark = perf_counter()

    def _passed(self, phase: str) -> None:
        now = perf_counter()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._mark
        self._mark = now


def _found(one: Figure) -> Found:
    match one:
        case Reading():
            return Found(readings=(one,))
        case Ratio():
            return Found(ratios=(one,))
        case Cost():
            return Found(costs=(one,))
        case Ceilings():
            return Found(ceilings=(one,))
        case Missing():
            return Found(missing=(one,))


def _ceilings(timer: Timer) -> Iterator[Ceilings]:
    from groundspeed.measure.ceilings import measure_ceilings, mix_rates

    found = measure_ceilings(("float32", "float16", "bfloat16"), True, timer)
    yield msgspec.structs.replace(found, mixes=mix_rates(timer))


if __name__ == "__main__":
    main()
