"""One case over several ranks, whole: prepare, judge, time, judge again; the worker's side.

The steps are those of ``groundspeed.measure.case``. Each is ordered of all ranks, and what one of them complains of is
the implementation's fault on all. The sample of a round is its slowest rank's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import msgspec

from groundspeed.analysis.stats import median
from groundspeed.measure.bench import PHASE_LIMITS, Fault, fault_row
from groundspeed.measure.case import by_quantity, counts
from groundspeed.measure.compiling import Tally, since
from groundspeed.measure.datasheet import peak
from groundspeed.measure.gpu_state import THERMAL, summary
from groundspeed.measure.incredible import foreign_kernel, no_time, too_fast
from groundspeed.measure.ranks.crew import Crew, RankLost, named
from groundspeed.measure.referee import REFEREE
from groundspeed.measure.referee.rules import later_calls
from groundspeed.measure.sampling import Budget, Rounds, sample
from groundspeed.measure.timers.base import Fitted, Run, Sample, sample_remarks
from groundspeed.operator import Case, Operator
from groundspeed.records import Accuracy, Clocks, Environment, Measurement

_CALL_ROUNDS = 15
_FLOOR_ROUNDS = 15
_ISSUE_NS = 400_000.0  # the host's time for a flush, two barriers and six events, generously
_SLACK = 2.0
_LONGER = 3.0
_TRIES = 3
_LONG_CALL_NS = 50e6
_MOST_SAID = 2  # ranks whose complaints are given in full


class Culprit(Exception):
    """An implementation that cost the crew: known by name, because it alone had the floor."""

    def __init__(self, name: str, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.name, self.fault = name, fault


class Muddle(Exception):
    """The crew was lost, or something shared was changed, while several took turns: whose doing it was is not known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


class SpecFault(Exception):
    """The spec's inputs or its reference raised: no implementation's doing."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


@dataclass(frozen=True)
class Table:
    """What a case is measured with.

    begin
        Told of each phase, the seconds that it may be silent and whose it is.
    not_done
        What was asked for and is not had of several ranks, in words, for the notes.
    limits
        Such seconds by phase in place of the usual ones. The ranks have half of them: this process speaks first.
    """

    crew: Crew
    spec: Operator
    environment: Environment
    budget: Budget
    begin: Callable[[str, float, str], None]
    check_only: bool = False
    vouched: bool = False
    not_done: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, of: str = "") -> Iterator[float]:
        """Announce a phase and add up its time; gives the seconds that a rank may take to answer."""
        limit = self.limits.get(name, 2 * PHASE_LIMITS[name])
        self.begin(name, limit, of)
        start = perf_counter()
        try:
            yield limit / 2
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def ask_of(self, name: str, phase: str, order: str, *given: Any) -> list[Any]:
        """The ranks' answers to an order that is about one implementation. Raises Culprit."""
        with self.phase(phase, name) as limit:
            try:
                return self.crew.ask(order, *given, limit=limit)
            except RankLost as lost:
                raise Culprit(name, lost.fault(self.crew.world)) from lost

    def ask_all(self, names: Sequence[str], phase: str, order: str, *given: Any) -> list[Any]:
        """The same of an order in which all take turns. Raises Muddle, and Culprit where there is but one."""
        if len(names) == 1:
            return self.ask_of(names[0], phase, order, *given)
        with self.phase(phase) as limit:
            try:
                return self.crew.ask(order, *given, limit=limit)
            except RankLost as lost:
                raise Muddle(lost.fault(self.crew.world)) from lost

    def complaint(self, answers: Iterable[Any]) -> Fault | None:
        """What ranks complain of among answers, saying which; None when none does."""
        faults = [(rank, answer) for rank, answer in enumerate(answers) if isinstance(answer, Fault)]
        if not faults:
            return None
        said = [named(self.crew.world, rank, fault.reason) for rank, fault in faults[:_MOST_SAID]]
        more = [f"and {len(faults) - _MOST_SAID} ranks more"] if len(faults) > _MOST_SAID else []
        return Fault(faults[0][1].failure, "; ".join([*said, *more]))


@dataclass
class _Judged:
    ready: list[str]
    faults: dict[str, Fault]
    accuracy: dict[str, Accuracy] = field(default_factory=dict)
    first: dict[str, tuple[float, float]] = field(default_factory=dict)  # prepare_ns, first_run_ns
    output_bytes: int = 0  # of the rank that returns most

    def calls_after(self, name: str) -> int:
        """How many calls a trial makes after its first, on every rank: few where a call takes long."""
        return 1 if self.first[name][1] > _LONG_CALL_NS else later_calls(REFEREE, self.output_bytes)


def measure(table: Table, number: int, case: Case, names: Sequence[str]) -> dict[str, Measurement | Fault]:
    """A row or a fault for each of the names. Raises Culprit, Muddle and SpecFault, and the crew is over then."""
    judged = _judge(table, number, case, names)
    found: dict[str, Measurement | Fault] = dict(judged.faults)
    if table.check_only:
        for name in judged.ready:
            row = Measurement(name, case.dtype, case.dims, "ok", accuracy=judged.accuracy[name])
            found[name] = row
        return found
    if judged.ready:
        found |= _timed(table, case, judged)
    return found


def _judge(table: Table, number: int, case: Case, names: Sequence[str]) -> _Judged:
    with table.phase("inputs") as limit:
        try:
            sizes = table.crew.ask("begin", number, limit=limit)
        except RankLost as lost:
            raise SpecFault(lost.fault(table.crew.world)) from lost
    judged = _Judged([], {}, output_bytes=max(sizes))
    for name in names:
        fault = _prepare(table, judged, name) or _sit(table, judged, name, 0)
        if fault is None:
            judged.ready.append(name)
        else:
            judged.faults[name] = fault
    sittings = REFEREE.sittings[:1] if table.vouched else REFEREE.sittings
    for place, sitting in enumerate(sittings[1:], start=1):
        if judged.ready and sitting.applies(table.spec, case):
            table.ask_all(judged.ready, "inputs", "renew", place)
            for name in sitting.order(list(judged.ready)):
                _drop(judged, name, _sit(table, judged, name, place))
    for name in list(judged.ready):
        if any(table.ask_of(name, "check", "grown", name)):
            _drop(judged, name, table.complaint(table.ask_of(name, "check", "grows", name)))
    return judged


def _drop(judged: _Judged, name: str, fault: Fault | None) -> None:
    if fault is not None:
        judged.ready.remove(name)
        judged.faults[name] = fault


def _prepare(table: Table, judged: _Judged, name: str) -> Fault | None:
    refusals = table.ask_of(name, "prepare", "refusal", name)
    refused = table.complaint(reason and Fault(None, reason) for reason in refusals)
    if refused is not None:
        return Fault(None, str(refusals[0])) if len(set(refusals)) == 1 else refused
    answers = table.ask_of(name, "prepare", "prepare", name)
    fault = table.complaint(answers)
    if fault is None:
        judged.first[name] = (max(one for one, _ in answers), max(one for _, one in answers))
    return fault


def _sit(table: Table, judged: _Judged, name: str, place: int) -> Fault | None:
    """Put an implementation to the referee of every rank; the worst accuracy of any is what is kept."""
    answers = table.ask_of(name, "check", "judge", name, place, judged.calls_after(name))
    fault = table.complaint(answers)
    if fault is None:
        judged.accuracy[name] = max(answers, key=lambda one: one.tolerance_used)
    return fault


class CrewTimer:
    """``sampling``'s timer: a round on all ranks, of each implementation the slowest rank's spans."""

    sees_kernels = False

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.name = "events" if table.environment.device == "cuda" else "clock"
        self._table, self._names = table, names
        self._lead = _SLACK

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        return Fitted(self)

    def once(self, call: Run) -> Sample:
        raise NotImplementedError("ranks call in rounds only")

    def collect(
        self, runs: Sequence[Any], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        for _ in range(_TRIES):
            spins = [_ISSUE_NS + 2 * self._lead * host for host in host_ns]
            ranks = self._table.ask_all(self._names, "time", "collect", [list(order) for order in orders], spins)
            rounds = [[slowest(same) for same in zip(*row, strict=True)] for row in zip(*ranks, strict=True)]
            if not any(one.waited for row in rounds for one in row):
                break
            self._lead *= _LONGER
        return rounds


def slowest(samples: Sequence[Sample]) -> Sample:
    """One sample of all ranks': of each span the longest, and whether any device waited for its host."""
    return Sample(
        cold=max(one.cold for one in samples),
        hot=max(one.hot for one in samples),
        waited=any(one.waited for one in samples),
    )


@dataclass(frozen=True)
class _Timed:
    rounds: Rounds
    calls: list[list[tuple[float, float]]]
    clocks: Clocks | None
    timer: str
    remarks: tuple[str, ...]


def _timed(table: Table, case: Case, judged: _Judged) -> dict[str, Measurement | Fault]:
    names, crew = list(judged.ready), table.crew
    before = table.ask_all(names, "calls", "compiled")
    per_rank = table.ask_all(names, "calls", "calls", names, _CALL_ROUNDS)
    called = [_slowest_calls(same) for same in zip(*per_rank, strict=True)]
    host = [median([host for _, host in one]) for one in called]
    readings: list[Any] = []

    def throttled() -> tuple[str, ...]:
        seen = [one for one in table.ask_all(names, "time", "reading") if one is not None]
        readings.extend(seen)
        return tuple({reason for one in seen for reason in one.throttle} & THERMAL)

    timer = CrewTimer(table, names)
    stand_ins: list[Run] = [lambda: None] * len(names)  # the runs themselves are the ranks'
    rounds = sample(timer, stand_ins, host, table.budget, throttled)
    remarks = (_floor_remark(table, names),) if timer.name == "events" else ()
    timed = _Timed(rounds, called, summary(readings), timer.name, remarks)
    changed = {one for one in table.ask_all(names, "check", "disturbed") if one}
    if changed:
        disturbed = Fault("incorrect", f"changed during the timed rounds: {', '.join(sorted(changed))}")
        if len(names) > 1:
            crew.end()
            raise Muddle(disturbed)
        return {names[0]: disturbed}
    compiled = _compiled(before, table.ask_all(names, "check", "compiled"))
    if len(compiled) > 1:
        crew.end()
        raise Muddle(Fault("error", next(iter(compiled.values()))))
    found: dict[str, Measurement | Fault] = {}
    for place, name in enumerate(names):
        fault = table.complaint(table.ask_of(name, "check", "judge_timed", name, place, judged.calls_after(name)))
        if fault is not None:
            found[name] = Fault(fault.failure, f"right before it was timed, wrong since: {fault.reason}")
        elif name in compiled:
            found[name] = Fault("error", compiled[name])
        else:
            found[name] = _row(table, case, judged, timed, place)
    return found


def _compiled(before: Sequence[Tally], now: Sequence[Tally]) -> dict[str, str]:
    """Who may have compiled during the rounds, on any rank."""
    ranks = zip(before, now, strict=True)
    return {name: reason for then, later in ranks for name, reason in since(then, later).items()}


def _slowest_calls(ranks: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    return [(max(call for call, _ in same), max(host for _, host in same)) for same in zip(*ranks, strict=True)]


def _floor_remark(table: Table, names: Sequence[str]) -> str:
    ranks = table.ask_all(names, "time", "floor", _FLOOR_ROUNDS)
    empty = median([max(same) for same in zip(*ranks, strict=True)])
    return (
        f"each call is timed by events behind a barrier of the GPUs, and the slowest rank counts; a call that does "
        f"nothing reads {empty / 1e3:.2f} µs, which is in every reading"
    )


def _row(table: Table, case: Case, judged: _Judged, timed: _Timed, place: int) -> Measurement | Fault:
    name = judged.ready[place]
    samples = timed.rounds.samples[place]
    resources, tuned, own = table.crew.ask("facts", name, limit=PHASE_LIMITS["check"], only=0)[0]
    recorded = table.ask_of(name, "check", "kernels", name)
    taken_ns = by_quantity(samples, timed.calls[place])
    fault = (
        _foreign(table, recorded, own)
        or no_time(table.spec, case, taken_ns)
        or _too_fast(table, case, taken_ns["device_cold"])
    )
    if fault is not None:
        return fault
    weights = table.ask_of(name, "memory", "weight", name)
    weight = max(weights, key=lambda one: one.total)
    blind = sorted({why for _, why in recorded if why})
    remarks = [
        f"{timed.rounds.retaken} rounds throttled and taken again" if timed.rounds.retaken else "",
        *timed.remarks,
        *sample_remarks(samples),
        *weight.remarks,
        f"whose kernels ran was not checked: {blind[0]}" if blind else "",
        *table.not_done,
    ]
    return Measurement(
        implementation=name,
        dtype=case.dtype,
        shape=case.dims,
        status="ok",
        unstable=timed.rounds.unstable[place],
        timer=timed.timer,
        samples=taken_ns,
        kernels=list(recorded[0][0]),
        prepare_ns=judged.first[name][0],
        first_run_ns=judged.first[name][1],
        peak_memory_bytes=weight.peak,
        prepared_memory_bytes=weight.prepared,
        accuracy=judged.accuracy[name],
        **counts(table.spec, case),
        resources=list(resources),
        tuned=tuned,
        clocks=timed.clocks,
        notes=[one for one in remarks if one],
    )


def _foreign(table: Table, recorded: Sequence[tuple[tuple[str, ...], str]], own: frozenset[str] | None) -> Fault | None:
    """A ``cuda_*`` or ``triton_*`` implementation launches its own kernels, on every rank."""
    for rank, (kernels, _) in enumerate(recorded):
        stranger = foreign_kernel(kernels, own)
        if stranger:
            return Fault("incorrect", named(table.crew.world, rank, stranger))
    return None


def _too_fast(table: Table, case: Case, cold: Sequence[float]) -> Fault | None:
    """Faster than one GPU's data sheet allows for one rank's share."""
    environment = table.environment
    top = peak(environment.device_name) if environment.device == "cuda" else None
    return too_fast(table.spec, case, median(cold) if cold else 0.0, top, environment.l2_bytes)


def row_of(name: str, case: Case, digest: str, implementation_digest: str, found: Measurement | Fault) -> Measurement:
    """What is kept of an outcome."""
    if isinstance(found, Fault):
        return fault_row(name, case, digest, found, implementation_digest)
    return msgspec.structs.replace(found, case_digest=digest, implementation_digest=implementation_digest)
