"""What a station does for ``groundspeed run --fleet``: sweeps operators as a local run does."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from groundspeed import session
from groundspeed.errors import UserError
from groundspeed.fleet.ground import SUSPECT, Ground
from groundspeed.fleet.scratch import scratch_folder
from groundspeed.fleet.shipping import unpack
from groundspeed.fleet.work import About, Tell, Unfit
from groundspeed.git import Commit
from groundspeed.guests import tree_with_guests
from groundspeed.measure.claim import GpuBusy, Patience
from groundspeed.measure.first_call_subset import Wanted
from groundspeed.measure.lane import Lane, open_lane
from groundspeed.measure.supervisor import Progress
from groundspeed.records import read_record
from groundspeed.selection import Selection
from groundspeed.session import Run


@dataclass(frozen=True)
class Supplies:
    """What every station of a run is given: the operators' folder, packed; how a lane is opened."""

    impls: bytes
    device: str
    patience: Patience
    compiler: bool


@dataclass(frozen=True)
class Sweep:
    """One operator to sweep, in the run that it belongs to. ``implementations`` is all that the driver has of it."""

    operator: str
    implementations: tuple[str, ...]
    run_id: str
    selection: Selection
    commit: Commit
    seed: int
    first_call: tuple[Wanted, ...]
    matrix: str


class SweepBench:
    """Holds a lane on its GPU from the first question to the end of its process."""

    def __init__(self, supplies: object, seat: str) -> None:
        assert isinstance(supplies, Supplies)
        self._supplies = supplies
        self._ground = Ground.of(supplies.device, seat)
        self._held = ExitStack()
        self._folder = scratch_folder()
        self._tree = tree_with_guests(unpack(supplies.impls, self._folder / "impls"))
        self._lane: Lane | None = None

    def about(self) -> About:
        problem = ""
        try:
            self._open()
        except GpuBusy as busy:
            problem = str(busy)
        return self._ground.about(problem)

    def work(self, order: object, tell: Tell) -> bytes:
        """The record file of one operator. Raises UserError, and Unfit where the GPU is lost."""
        assert isinstance(order, Sweep)
        run = self._run(order)
        self._check_inventory(order)
        try:
            path = session.measure_operator(run, order.operator, lambda event: tell(*_told(event)), self._open())
        except GpuBusy as busy:
            raise Unfit(str(busy)) from busy
        except UserError as error:
            self._check_fit(error)
            raise UserError(str(error).replace(f"{self._folder}/", "")) from error
        if any(row.failure in SUSPECT for row in read_record(path).measurements):
            self._check_fit(None)
        payload = path.read_bytes()
        path.unlink()
        return payload

    def _open(self) -> Lane:
        if self._lane is None:
            supplies = self._supplies
            lane = open_lane(self._ground.place, supplies.patience, compiler=supplies.compiler)
            self._lane = self._held.enter_context(lane)
            self._lane.workers.warm_up()
        return self._lane

    def _check_inventory(self, order: Sweep) -> None:
        """What packages bring is installed on each host, and must be the same on all."""
        mine = {one.name for one in self._tree.implementations(order.operator)}
        apart = sorted(mine ^ set(order.implementations))
        if apart:
            has = "has no" if apart[0] not in mine else "alone has"
            what = f"{order.operator}: {self._ground.label} {has} {', '.join(apart)}"
            raise UserError(f"{what}; install the same packages there as here")

    def _check_fit(self, cause: Exception | None) -> None:
        why = self._ground.why_unfit()
        if why:
            raise Unfit(why) from cause

    def _run(self, order: Sweep) -> Run:
        return Run(
            root=self._folder,
            results=self._folder / "results",
            machine=self._ground.machine,
            run_id=order.run_id,
            device=self._supplies.device,
            selection=order.selection,
            tree=self._tree,
            commit=order.commit,
            seed=order.seed,
            first_call=order.first_call,
            matrix=order.matrix,
        )


def _told(event: Progress) -> tuple[str, float]:
    """What a sweep's event says, and how much of the sweep is done: whole cases, by the rows that are there."""
    where = f" {event.implementation}" if event.implementation else ""
    if not event.in_case:
        return event.phase + where, 0.0
    return f"{event.phase}{where}, case {event.case + 1} of {event.cases}", event.case / event.cases
