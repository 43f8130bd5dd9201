"""``groundspeed gate --fleet``: an operator a piece, all its processes, base and head, on one GPU."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from groundspeed.fleet.account import by_operator, moved
from groundspeed.fleet.driver import FIRST, Driver, FleetLost, HeadLost, Limits
from groundspeed.fleet.ground import SUSPECT, Ground
from groundspeed.fleet.ledger import Ledger, totals
from groundspeed.fleet.scratch import scratch_folder
from groundspeed.fleet.shipping import pack, unpack
from groundspeed.fleet.view import FleetView
from groundspeed.fleet.work import About, Piece, Tell, Unfit
from groundspeed.gate.evidence import Evidence, Judging, Measuring, Mixed
from groundspeed.gate.paired import PairSamples, Side
from groundspeed.gate.plan import Plan, PlannedPair
from groundspeed.gate.versions import Versions
from groundspeed.measure.paired import PairedEngine
from groundspeed.tree import Tree

BASE, HEAD = "base", "head"  # in an order, for the folder that each station unpacks it to
_FIRST_GUESS = 2.0  # seconds for one case of one pair in one process; only the order of operators depends on it


@dataclass(frozen=True)
class Supplies:
    """What every station of a gate is given: both versions' operators, packed."""

    base: bytes
    head: bytes
    device: str


@dataclass(frozen=True)
class Comparison:
    """One operator to compare.

    pairs
        With BASE and HEAD in the place of the trees' folders.
    deadline
        Seconds since 1970 after which the rest counts as not measured. The hosts' clocks must agree to the second.
    """

    operator: str
    pairs: tuple[PlannedPair, ...]
    judging: Judging
    seed: int
    deadline: float


class Suspicious(Exception):
    """No process of an operator could begin, on a GPU that answers: another host may do better."""


class GateBench:
    """Compares operators with the engine of a local gate, on its GPU."""

    def __init__(self, supplies: object, seat: str) -> None:
        assert isinstance(supplies, Supplies)
        self._ground = Ground.of(supplies.device, seat)
        self._folder = scratch_folder()
        for name, packed in ((BASE, supplies.base), (HEAD, supplies.head)):
            unpack(packed, self._folder / name / "impls")
        self._engine = PairedEngine()

    def about(self) -> About:
        return self._ground.about()

    def work(self, order: object, tell: Tell) -> Evidence:
        """All processes of one operator. Raises Unfit where the GPU is lost, Suspicious where none could begin."""
        assert isinstance(order, Comparison)
        left = max(0.0, order.deadline - time.time())
        config = replace(order.judging.config, budget_seconds=min(left, order.judging.config.budget_seconds))
        wanted = config.processes

        def progress(line: str) -> None:
            done = sum(step.processes for step in measuring.evidence.steps.values())
            tell(line.strip(), min(1.0, done / wanted))

        head = Tree(self._folder / HEAD / "impls")
        measuring = Measuring(self._engine, head, replace(order.judging, config=config), order.seed, progress)
        evidence = measuring.run(Plan(pairs=tuple(map(self._here, order.pairs))))
        lost = evidence.lost.get(order.operator, "")
        if _has_crashed(evidence) or (lost and time.monotonic() < measuring.deadline):
            why = self._ground.why_unfit()
            if why:
                raise Unfit(why)
            if lost and evidence.runner is None:
                raise Suspicious(lost)
        return evidence

    def _here(self, planned: PlannedPair) -> PlannedPair:
        return _with_trees(planned, {Path(name): self._folder / name / "impls" for name in (BASE, HEAD)})


class Comparisons:
    """What the driver of a gate gathers: the evidence of each operator, which is whole or lacks with a reason."""

    def __init__(self, plan: Plan, versions: Versions, judging: Judging, seed: int, machine: str) -> None:
        self._plan, self._judging, self._seed, self._machine = plan, judging, seed, machine
        self._names = {versions.base.root: Path(BASE), versions.head.root: Path(HEAD)}
        self._deadline = time.time() + judging.config.budget_seconds
        self.evidence = Evidence()

    def pieces(self, about: About) -> Iterable[Piece]:
        if about.machine != self._machine:
            return []
        return [self._piece(operator) for operator in self._plan.operators]

    def is_done(self, piece: Piece) -> bool:
        """One whose turn comes after the budget was spent is done: it was not measured."""
        if time.time() < self._deadline:
            return False
        reason = f"the budget of {self._judging.config.budget_seconds:g} s was spent"
        self.evidence.lost.setdefault(piece.name, reason)
        return True

    def keep(self, piece: Piece, result: object) -> bool:
        """Raises Mixed when it comes of another kind of machine, driver or torch than what is there."""
        assert isinstance(result, Evidence)
        _check_alike(self.evidence.runner, result.runner)
        mine = self.evidence
        mine.runner = mine.runner or result.runner
        for into, new in ((mine.first, result.first), (mine.fresh, result.fresh)):
            into.update(new)
        mine.suspects.update(result.suspects)
        mine.lost.update(result.lost)
        for name, step in result.steps.items():
            for _ in range(step.processes - 1):
                mine.count(name, 0.0, {})
            mine.count(name, step.seconds, step.phases)
        return True

    def give_up(self, reasons: dict[str, str], otherwise: str) -> None:
        """Say of what has no evidence why."""
        there = {operator for operator, _, _ in self.evidence.first}
        for operator in self._plan.operators:
            if operator in reasons or operator not in there:
                self.evidence.lost.setdefault(operator, reasons.get(operator, otherwise))

    def _piece(self, operator: str) -> Piece:
        pairs = self._plan.of(operator)
        shipped = tuple(_with_trees(planned, self._names) for planned in pairs)
        order = Comparison(operator, shipped, self._judging, self._seed, self._deadline)
        cases = sum(len(planned.pair.cases) for planned in pairs)
        return Piece(operator, self._machine, cases * self._judging.config.processes * _FIRST_GUESS, order)


@dataclass
class GateFleet:
    """The fleet of one gate run: how ``run_gate`` spreads its measuring. ``remarks`` are for the report."""

    machine: str
    device: str
    without: frozenset[str]
    wait: float
    ledger: Ledger
    watching: FleetView
    environment: dict[str, str]
    remarks: list[str] = field(default_factory=list)

    def __call__(self, plan: Plan, versions: Versions, judging: Judging, seed: int) -> Evidence:
        """Raises UserError before anything is measured, and Mixed."""
        from groundspeed.fleet.ray_stations import RayStations

        work = Comparisons(plan, versions, judging, seed, self.machine)
        if not plan.operators:
            return work.evidence
        supplies = Supplies(pack(versions.base.root), pack(versions.head.root), self.device)
        stations = RayStations(GateBench, supplies, self.device, len(plan.operators), self.environment, self.without)
        limits = Limits(first=max(FIRST, self.wait))
        reasons, otherwise = {}, "no station returned it"
        try:
            done = Driver(stations, work, self.ledger, self.watching, limits).run()
            reasons = {name: why for (_, name), why in done.problems.items()}
            self.remarks += [*done.remarks, *moved(done.moves)]
        except (FleetLost, HeadLost) as lost:
            otherwise = str(lost)
        finally:
            self.watching.clear()
            stations.close()
        work.give_up(reasons, otherwise)
        self.remarks.append(self._cost())
        return work.evidence

    def _cost(self) -> str:
        lines = self.ledger.lines
        spent = totals(lines)
        ranked = sorted(by_operator(lines).items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in ranked)
        gpus = len({line.place for line in lines})
        held, idle = sum(spent.values()), spent.get("idle", 0.0)
        return f"cost: {held:.1f} GPU-seconds on {gpus}, {idle:.1f} of them idle: {listed}"


def _with_trees(planned: PlannedPair, trees: Mapping[Path, Path]) -> PlannedPair:
    """The same pair with other folders in the place of its trees'."""
    pair = planned.pair
    base, head = (Side(trees[side.tree], side.implementation) for side in (pair.base, pair.head))
    return replace(planned, pair=replace(pair, base=base, head=head))


def _check_alike(first: PairSamples | None, other: PairSamples | None) -> None:
    """Operators may be compared on different GPUs, each on one; the GPUs must be alike."""
    if first is None or other is None:
        return
    mine, theirs = _kind(first), _kind(other)
    if mine != theirs:
        raise Mixed(f"{other.operator} ran on {theirs}, {first.operator} on {mine}")


def _kind(samples: PairSamples) -> str:
    environment = samples.environment
    return " ".join((samples.machine, environment.device_name, environment.driver, environment.torch))


def _has_crashed(evidence: Evidence) -> bool:
    outcomes = [one for found in (evidence.first, evidence.fresh) for each in found.values() for one in each]
    return any(side.failure in SUSPECT for one in outcomes for side in (one.base, one.head))
