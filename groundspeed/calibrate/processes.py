"""A calibration's processes, one measuring at a time; the next starts while one loads, and neither measures then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from groundspeed.calibrate.protocol import GO, Done, Event, Found, Loaded, Loading, Ready, Step, Task, decode_event
from groundspeed.calibrate.schema import Clocked, Cost, Missing, Ratio, Reading
from groundspeed.measure.process import Worker, start_worker, worker_environment
from groundspeed.records import Ceilings, Clocks, Environment

_SILENCE = 120.0  # seconds without a word from a process, after which it hangs
Start = Callable[[Task], Worker]


@dataclass
class Collected:
    """All that the processes told."""

    environment: Environment | None = None
    timer: str = ""
    readings: list[Reading] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    ceilings: list[Ceilings] = field(default_factory=list)
    clocks: list[Clocks] = field(default_factory=list)
    clocked: list[Clocked] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)

    def add(self, other: Collected) -> None:
        """Take in what another process told."""
        self.environment = self.environment or other.environment
        self.timer = self.timer or other.timer
        for name in ("readings", "ratios", "costs", "ceilings", "clocks", "clocked", "missing"):
            getattr(self, name).extend(getattr(other, name))
        for phase, seconds in other.phases.items():
            self.phases[phase] = self.phases.get(phase, 0.0) + seconds

    def take(self, event: Event) -> None:
        match event:
            case Ready():
                self.environment = event.environment
            case Loaded():
                self.timer = event.timer
            case Found():
                self.readings += event.readings
                self.ratios += event.ratios
                self.costs += event.costs
                self.ceilings += event.ceilings
                self.clocked += event.clocked
                self.missing += event.missing
            case Done():
                self.phases = dict(event.seconds)
                self.clocks += [event.clocks] if event.clocks else []


class ProcessLost(Exception):
    """A process ended or fell silent; ``method`` is what it was at, empty before it was at any."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(reason)
        self.method = method


class Child:
    """One process: given its task, told to go on, listened to until it says a thing."""

    def __init__(self, worker: Worker, task: Task) -> None:
        self._worker, self._task = worker, task
        self._lines = worker.lines(lambda: _SILENCE)
        self._method = ""
        self._ready = False
        self.told = Collected()
        self._write(msgspec.json.encode(task) + b"\n")

    def begin(self) -> None:
        """Wait until it is ready to measure. Raises ProcessLost, as all of these do when it ends or falls silent."""
        if not self._ready:
            self.until(Ready)

    def go(self) -> None:
        self._write(GO)

    def until(self, kind: type[Event]) -> None:
        """Listen until it says this."""
        for line in self._lines:
            if line is None:
                raise ProcessLost(self._method, f"no sign of life for {_SILENCE:.0f} s")
            event = decode_event(line)
            if isinstance(event, Step):
                self._method = event.method
            elif isinstance(event, Loading):
                self._method = ""
            self._ready = self._ready or isinstance(event, Ready)
            self.told.take(event)
            if isinstance(event, kind):
                return
        raise self._lost()

    def end(self) -> None:
        self._worker.kill()

    def _write(self, line: bytes) -> None:
        stdin = self._worker.process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone, which listening to it will tell
            stdin.write(line)
            stdin.flush()

    def _lost(self) -> ProcessLost:
        status = self._worker.wait()
        said = self._worker.last_words()
        how = "it fell silent" if status is None else f"it ended with status {status}"
        return ProcessLost(self._method, how + (f": {said}" if said else ""))


def start_children(variables: dict[str, str]) -> Start:
    """What starts a process of the package, with these variables besides its own environment."""
    environment = worker_environment(variables)
    return lambda task: start_worker(environment, "groundspeed.calibrate.child")


def run_processes(
    tasks: Sequence[Task], start: Start, progress: Callable[[int], None] = lambda process: None
) -> Iterator[Collected]:
    """Yield what each process told, in order. A peer's method that kills one is left out of all from then on.

    ``progress`` is called with each process's number before it measures.
    """
    guilty: dict[str, str] = {}
    waiting: Child | None = None
    queue = list(tasks)
    try:
        while queue:
            task = _without(queue[0], guilty)
            current, waiting = waiting or Child(start(task), task), None
            progress(task.process)
            try:
                current.begin()
                current.go()
                current.until(Loading)
                following = _without(queue[1], guilty) if len(queue) > 1 else None
                waiting = Child(start(following), following) if following else None
                current.until(Loaded)
                waiting = _begun(waiting)
                current.go()
                current.until(Done)
            except ProcessLost as lost:
                if lost.method in task.peers:
                    guilty[lost.method] = f"killed its process: {lost}"
                    continue  # the same process again, without it
                current.told.missing.append(Missing("", f"the process was lost: {lost}", process=task.process))
            finally:
                current.end()
            current.told.missing += [Missing(method, reason) for method, reason in guilty.items()]
            queue.pop(0)
            yield current.told
    finally:
        if waiting:
            waiting.end()


def _begun(child: Child | None) -> Child | None:
    """A process that is ready, or None for one that could not begin: it is started again when its turn comes."""
    try:
        if child:
            child.begin()
        return child
    except ProcessLost:
        assert child is not None
        child.end()
        return None


def _without(task: Task, guilty: dict[str, str]) -> Task:
    return msgspec.structs.replace(task, peers=tuple(method for method in task.peers if method not in guilty))
