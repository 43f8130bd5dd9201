"""``groundspeed run --fleet``: the operators of a run over the GPUs of a Ray cluster, one whole sweep a piece."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.fleet.dispatch import Move
from groundspeed.fleet.driver import FIRST, Driver, FleetLost, HeadLost, Limits
from groundspeed.fleet.ledger import Ledger, Spent
from groundspeed.fleet.shipping import pack
from groundspeed.fleet.store import add_once
from groundspeed.fleet.sweeps import Supplies, Sweep, SweepBench
from groundspeed.fleet.view import FleetView
from groundspeed.fleet.work import About, Piece
from groundspeed.measure.claim import Patience, lock_folder
from groundspeed.session import Run, compiles

Expect = Callable[[Run, Mapping[str, Run]], dict[str, float]]
Begin = Callable[[Run], None]


@dataclass(frozen=True)
class Fleet:
    """How a fleet is used: hosts left out, patience with others on a GPU, whom it is for."""

    without: frozenset[str]
    patience: Patience
    pull_request: str


@dataclass(frozen=True)
class FleetRun:
    """What a run on a fleet leaves besides its records. ``problems`` by machine and operator."""

    machines: tuple[str, ...]
    problems: dict[tuple[str, str], str]
    moves: tuple[Move, ...]
    remarks: tuple[str, ...]
    lines: tuple[Spent, ...]


class Sweeps:
    """What the driver gathers: records of a run, those of each machine in its own folder."""

    def __init__(self, opened: Run, runs: Mapping[str, Run], expect: Expect, begin: Begin) -> None:
        self._opened, self._runs, self._expect, self._begin = opened, runs, expect, begin
        self.machines: list[str] = []

    def pieces(self, about: About) -> Iterable[Piece]:
        """Every operator that the run lacks on this machine."""
        opened = replace(self._opened, machine=about.machine)
        self.machines.append(about.machine)
        self._begin(opened)
        runs = {name: replace(run, machine=about.machine) for name, run in self._runs.items()}
        left = {name: run for name, run in runs.items() if not run.record_path(name).exists()}
        expected = self._expect(opened, left)
        return [Piece(name, about.machine, expected[name], _sweep(run, name)) for name, run in left.items()]

    def is_done(self, piece: Piece) -> bool:
        return self._path(piece).exists()

    def keep(self, piece: Piece, result: object) -> bool:
        assert isinstance(result, bytes)
        return add_once(self._path(piece), result)

    def _path(self, piece: Piece) -> Path:
        return replace(self._opened, machine=piece.machine).record_path(piece.name)


def run_fleet(
    opened: Run, runs: Mapping[str, Run], fleet: Fleet, expect: Expect, begin: Begin, watching: FleetView
) -> FleetRun:
    """Measure on the stations of the cluster that this process is connected to.

    ``begin`` is called with the run on each machine before anything of it is measured. Raises UserError before anything
    is measured, and FleetLost, which is one, when no station is left.
    """
    from groundspeed.fleet.ray_stations import RayStations

    compiler = any(compiles(run, name) for name, run in runs.items())
    supplies = Supplies(pack(opened.tree.root), opened.device, fleet.patience, compiler)
    work = Sweeps(opened, runs, expect, begin)
    ledger = Ledger(opened.results, opened.run_id, "run", opened.commit.hash, fleet.pull_request)
    stations = RayStations(SweepBench, supplies, opened.device, len(runs), passed_on(), fleet.without)
    limits = Limits(first=max(FIRST, fleet.patience.seconds))
    try:
        done = Driver(stations, work, ledger, watching, limits).run()
    except (FleetLost, HeadLost) as lost:
        raise FleetLost(f"{lost}; {opened.go_on}") from lost
    finally:
        watching.clear()
        stations.close()
    return FleetRun(tuple(work.machines), done.problems, tuple(done.moves), tuple(done.remarks), tuple(ledger.lines))


def passed_on() -> dict[str, str]:
    """What a station must know of this process's environment: how many threads a CPU's operators may use."""
    return {name: os.environ[name] for name in ("OMP_NUM_THREADS", "GROUNDSPEED_TIMER") if name in os.environ}


@contextmanager
def only_driver(folder: Path) -> Iterator[None]:
    """Keep a second driver on this host off a run. Raises UserError while another works on it.

    On another host nothing keeps it off: it finds what is there, and what both measure is kept once.
    """
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    path = lock_folder() / f"fleet-{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise UserError(
                f"another driver (process {holder}) works on run {folder.name}: end it, or wait for it"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _sweep(run: Run, operator: str) -> Sweep:
    names = tuple(one.name for one in run.tree.implementations(operator))
    return Sweep(operator, names, run.run_id, run.selection, run.commit, run.seed, run.first_call, run.matrix)
