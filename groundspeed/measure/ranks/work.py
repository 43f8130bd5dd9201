"""The work of a worker whose operator is spread over ranks: which crew does which case, and what a lost crew means."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import msgspec

from groundspeed.errors import UserError
from groundspeed.machine import visible_gpus
from groundspeed.measure.bench import Fault, memory_shortage
from groundspeed.measure.device import budget
from groundspeed.measure.opening import entries
from groundspeed.measure.protocol import CaseDone, Channel, Job, Phase, Ready, Row, Teller
from groundspeed.measure.ranks.case import Culprit, Muddle, SpecFault, Table, measure, row_of
from groundspeed.measure.ranks.crew import Crew, RankLost
from groundspeed.measure.ranks.member import serve
from groundspeed.measure.ranks.view import too_wide
from groundspeed.measure.sides import takes_part
from groundspeed.operator import Case, Operator
from groundspeed.records import Environment, Measurement
from groundspeed.tree import Tree

_JOIN_LIMIT = 180.0  # seconds: NCCL connects, a context is made on every GPU
_LOAD_LIMIT = 900.0  # CUDA files are compiled
_CEILINGS_LIMIT = 180.0
_MARGIN = 60.0  # by which the supervisor waits longer than this process does

Found = dict[str, Measurement | Fault]


def work(job: Job, tree: Tree, spec: Operator, channel: Channel, seconds: dict[str, float]) -> None:
    """Do the job's cases, those of the largest world size first; all of one world size share a crew.

    Raises UserError when not even one rank can be started.
    """
    gpus = len(visible_gpus()) if job.device == "cuda" else 0
    cases = job.case_list()
    able = [number for number, one in enumerate(cases) if too_wide(spec, one, job.device, gpus) is None]
    able.sort(key=lambda number: (-spec.world_size(cases[number]), number))
    told = _Told(job, tree, spec, channel)
    with _Crews(job, spec, channel, seconds) as crews:
        crews.at_most([spec.world_size(cases[number]) for number in able])
        for number in able:
            part = told.part(cases[number])
            try:
                found = _Attempt(crews, number, cases[number], part).found()
            except UserError as error:
                found = {name: Fault("error", str(error)) for name in part}
            told.tell(number, found)
    for number in range(len(cases)):
        reason = too_wide(spec, cases[number], job.device, gpus)
        if reason is not None:
            told.tell(number, {name: Fault(None, reason) for name in told.part(cases[number])})


class _Told:
    """Tells the supervisor of rows."""

    def __init__(self, job: Job, tree: Tree, spec: Operator, channel: Channel) -> None:
        self._job, self._tree, self._spec, self._channel = job, tree, spec, channel
        self._digests = {label: own.implementation_digest(one) for label, own, one in entries(job, tree)}

    def part(self, case: Case) -> list[str]:
        """Who takes part in a case, in the job's order."""
        taking = takes_part(self._job, case)
        return [name for name in self._job.implementations if name in taking]

    def tell(self, number: int, found: Found) -> None:
        case = self._job.case_list()[number]
        digest = self._tree.case_digest(self._job.operator, case)
        for name in self.part(case):
            self._channel.send(Row(number, row_of(name, case, digest, self._digests[name], found[name])))
        self._channel.send(CaseDone(number))


class _Crews:
    """One crew at a time, of the world size that is wanted, its ranks joined and everything loaded."""

    def __init__(self, job: Job, spec: Operator, channel: Channel, seconds: dict[str, float]) -> None:
        self.job, self.spec, self.seconds = job, spec, seconds
        self.faults: dict[str, Fault] = {}  # of implementations that cannot be loaded
        self._left_out: dict[str, Fault] = {}  # those of them that no crew is to load again
        self._never: dict[int, str] = {}  # world sizes that could not be had at the first try, and why
        self._had: set[int] = set()
        self.teller = Teller(channel)
        self._channel = channel
        self._crew: Crew | None = None
        self._known: Environment | None = None
        self._table: Table | None = None

    def __enter__(self) -> _Crews:
        return self

    def __exit__(self, *how: object) -> None:
        self.end()

    def end(self) -> None:
        if self._crew is not None:
            self._crew.end()
        self._crew = self._table = None

    def at_most(self, worlds: Sequence[int]) -> None:
        """Begin with the largest of these world sizes that can be had, or with one rank. Raises UserError for none."""
        for world in (*dict.fromkeys(worlds), 1):
            try:
                self.at(world)
                return
            except UserError:
                if world == 1:
                    raise

    def at(self, world: int) -> Table:
        """A table with a crew of so many ranks. Raises UserError where they cannot be started."""
        if self._table is not None and self._table.crew.world == world:
            return self._table
        if world in self._never:
            raise UserError(self._never[world])
        self.end()
        try:
            table = self._tabled(self._opened(world))
        except RankLost as lost:
            self.end()
            why = f"{self.job.operator}: {world} ranks could not be started: {lost.fault(world).reason}"
            if world not in self._had:
                self._never[world] = why
            raise UserError(why) from lost
        self._had.add(world)
        return table

    def _opened(self, world: int) -> Crew:
        crew = self._crew = Crew(self.job, world, serve)
        self._phase("start", _JOIN_LIMIT)
        start = perf_counter()
        (port,) = crew.ask("listen", limit=_JOIN_LIMIT, only=0)
        crew.ask("join", port, limit=_JOIN_LIMIT)
        self._spent("join", start)
        start = perf_counter()
        self._phase("load", _LOAD_LIMIT)
        crew.ask("imports", limit=_LOAD_LIMIT)
        faults = dict(self._left_out)
        for rank in range(world):  # one after the other: the first compiles what is to be compiled
            found, spoiler = crew.ask("load", limit=_LOAD_LIMIT, only=rank)[0]
            if spoiler:
                self.end()
                self._spent("load", start)
                self._leave_out(spoiler, found[spoiler])
                return self._opened(world)
            faults |= found
        self.faults = faults
        self._spent("load", start)
        return crew

    def _leave_out(self, name: str, fault: Fault) -> None:
        """Have no further crew load it: it spoils the process for all others."""
        self._left_out[name] = fault
        left = tuple(other for other in self.job.implementations if other != name)
        self.job = msgspec.structs.replace(self.job, implementations=left)

    def _tabled(self, crew: Crew) -> Table:
        environment = self._known
        if environment is None:
            start = perf_counter()
            self._phase("ceilings", _CEILINGS_LIMIT)
            environment = self._known = crew.ask("describe", limit=_JOIN_LIMIT, only=0)[0]
            timed = self.job.device == "cuda" and not self.job.check_only and not self.job.sides
            ceilings = crew.ask("ceilings", limit=_CEILINGS_LIMIT, only=0)[0] if timed else None
            self._channel.send(Ready(environment, ceilings))
            self._spent("ceilings", start)
        self._table = Table(
            crew=crew,
            spec=self.spec,
            environment=environment,
            budget=budget(self.job),
            begin=self.teller.begin,
            check_only=self.job.check_only,
            vouched=self.job.vouched,
            not_done=not_done(self.job),
            limits=self.job.limits,
            seconds=self.seconds,
        )
        return self._table

    def _phase(self, name: str, limit: float) -> None:
        self._channel.send(Phase(name, limit + _MARGIN))

    def _spent(self, name: str, start: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start


def not_done(job: Job) -> tuple[str, ...]:
    """What a job asks for that is not had of several ranks."""
    said = []
    if job.timer not in ("", "events"):
        said.append(f"timed by events and not by {job.timer}: a span of a collective holds a wait for the other ranks")
    if job.energy and job.device == "cuda":
        said.append("energy: not measured over several ranks")
    return tuple(said)


class _Attempt:
    """One case: all its implementations together; when the crew is lost, who it was and what the rest can do."""

    def __init__(self, crews: _Crews, number: int, case: Case, names: Sequence[str]) -> None:
        self._crews, self._number, self._case, self._names = crews, number, case, list(names)

    def found(self) -> Found:
        """A row or a fault for each."""
        self._crews.teller.case = self._number
        world = self._crews.spec.world_size(self._case)
        table = self._crews.at(world)
        found: Found = {name: fault for name, fault in self._crews.faults.items() if name in self._names}
        free = min(table.crew.ask("free_memory", limit=_JOIN_LIMIT))
        shortage = memory_shortage(self._crews.spec, self._case, free // world)
        if shortage:
            return {name: found.get(name, Fault(None, shortage)) for name in self._names}
        able = [name for name in self._names if name not in found]
        if not able:
            return found
        try:
            return found | self._together(able)
        except Muddle as muddle:
            self._crews.end()
            shown = muddle.fault
        alone = {name: self._alone(name) for name in able}
        sound = [name for name in able if isinstance(alone[name], Measurement)]
        try:
            again = self._together(sound) if len(sound) > 1 else {}
        except Muddle as muddle:
            self._crews.end()
            again = {name: Fault(shown.failure, f"{muddle.fault.reason}, although each passed alone") for name in sound}
        return found | alone | again

    def _alone(self, name: str) -> Measurement | Fault:
        self._crews.teller.alone = name
        try:
            return self._together([name])[name]
        finally:
            self._crews.teller.alone = ""

    def _together(self, names: Sequence[str]) -> Found:
        """All of them in the same rounds, without those that cost the crew. Raises Muddle."""
        left, found = list(names), dict[str, Measurement | Fault]()
        while left:
            table = self._crews.at(self._crews.spec.world_size(self._case))
            try:
                return found | measure(table, self._number, self._case, left)
            except Culprit as culprit:
                self._crews.end()
                found[culprit.name] = culprit.fault
                left.remove(culprit.name)
            except SpecFault as broken:
                self._crews.end()
                said = f"spec of {self._crews.job.operator}, inputs or reference: {broken.fault.reason}"
                return found | {name: Fault(broken.fault.failure, said) for name in left}
        return found
