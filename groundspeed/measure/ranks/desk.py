"""One rank's work, order by order: its side of ``case``, on its own device, with its own inputs and outputs.

Each public method is an order. All ranks are given the same ones with the same arguments, so that what they call, and
how often, is the same; nothing here may decide by a clock or by chance whether the implementation is called once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from groundspeed.guests import tree_with_guests
from groundspeed.measure import calls, compilations, compiling, inputs, preload
from groundspeed.measure.bench import Fault, as_fault
from groundspeed.measure.compiler_use import uses_compiler
from groundspeed.measure.contender import Contender, Prepared, prepare, prepare_weighed, refusal
from groundspeed.measure.environment import describe, free_memory, gpu_handle
from groundspeed.measure.gpu_state import Reading
from groundspeed.measure.judging import (
    Judged,
    clean_up,
    disturbed,
    grown_by,
    growth,
    in_sitting,
    judged_and_grown,
    judged_once,
    judged_timed,
    renewed,
    sheet_of,
)
from groundspeed.measure.kept import take_workspaces
from groundspeed.measure.opening import Spoiled, entries, open_all
from groundspeed.measure.protocol import Job
from groundspeed.measure.ranks.trains import Trains, make_trains
from groundspeed.measure.ranks.view import of_rank, view_of
from groundspeed.measure.referee import REFEREE, Complaint, Sheet
from groundspeed.measure.referee.witness import Witnesses, watchable
from groundspeed.measure.sides import adopt_tolerance, share_tunings
from groundspeed.measure.timers.base import Sample
from groundspeed.measure.weighing import Weight, weigh
from groundspeed.records import Accuracy, Ceilings, Environment, KernelResources
from groundspeed.tree import Tree

_HOST = "127.0.0.1"  # ranks are of one machine
_PATIENCE = timedelta(minutes=15)  # the worker's own is shorter, and it is the worker that ends them


class Desk:
    """What a rank has at hand: the implementations, and of the case being measured inputs, oracle and outputs."""

    def __init__(self, job: Job, rank: int, world: int) -> None:
        self._job, self._rank, self._world = job, rank, world
        specs = tree_with_guests(Path(job.specs))
        self._tree = specs if job.specs == job.tree else Tree(Path(job.tree), specs=specs)
        self.roots = (self._tree.root, specs.root)
        self._spec = adopt_tolerance(view_of(self._tree.spec(job.operator), rank), job.tolerance)
        self._opened: dict[str, Contender | Fault] = {}
        self._ready: dict[str, Prepared] = {}
        self._grown: dict[str, list[int]] = {}
        self._made: inputs.CaseInputs = {}
        self._sheet: Sheet | None = None
        self._witnesses: Witnesses | None = None
        self._trains: Trains | None = None
        self._store: Any = None

    def listen(self) -> int:
        """Open the store through which the ranks find each other; its port."""
        self._store = distributed.TCPStore(
            _HOST, 0, self._world, is_master=True, wait_for_workers=False, timeout=_PATIENCE
        )
        return int(self._store.port)

    def join(self, port: int) -> None:
        """Become a member of torch.distributed's default group: NCCL for GPUs' tensors, gloo for the host's."""
        store = self._store or distributed.TCPStore(
            _HOST, port, self._world, is_master=False, wait_for_workers=False, timeout=_PATIENCE
        )
        on_gpu = self._job.device == "cuda"
        distributed.init_process_group(
            backend="cpu:gloo,cuda:nccl" if on_gpu else "gloo",
            store=store,
            rank=self._rank,
            world_size=self._world,
            timeout=_PATIENCE,
            device_id=torch.device("cuda", self._rank) if on_gpu else None,
        )
        self._trains = make_trains(self._job.device)

    def describe(self) -> Environment:
        return describe(self._job.device, {one.backend for _, _, one in entries(self._job, self._tree)})

    def ceilings(self) -> Ceilings | None:
        """What this GPU reaches, and what passes between it and the next; asked of one rank, the others being idle."""
        if self._job.device != "cuda":
            return None
        from groundspeed.measure.ceilings import measure_ceilings
        from groundspeed.measure.device import make_timer
        from groundspeed.measure.ranks.peer_rate import with_peer_rates

        compute = self._spec.bound == "compute"
        found = measure_ceilings(self._spec.dtypes, compute, make_timer("cuda", self._job.timer))
        return with_peer_rates(found) if self._world > 1 else found

    def imports(self) -> None:
        """Import the compiler if something of the job needs it: the first case that is compiled would pay for all."""
        if uses_compiler(file for _, _, one in entries(self._job, self._tree) for file in one.files):
            preload.compiler()

    def load(self) -> tuple[dict[str, Fault], str]:
        """Load all implementations; those that cannot be and why, and which of them spoiled this process, if any."""
        try:
            opened = share_tunings(open_all(self._job, self._tree, lambda name: None), self._job.tunings)
        except Spoiled as spoiled:
            return {spoiled.label: Fault("error", spoiled.reason)}, spoiled.label
        self._opened = {name: of_rank(one) if isinstance(one, Contender) else one for name, one in opened.items()}
        return {name: one for name, one in self._opened.items() if isinstance(one, Fault)}, ""

    def free_memory(self) -> int:
        return free_memory(self._job.device)

    def begin(self, number: int) -> int:
        """Begin with a case of the job; bytes of one of this rank's outputs."""
        compilations.reset()
        self._ready.clear()
        self._grown.clear()
        self._witnesses = self._sheet = None
        self._made = {}
        if self._job.device == "cuda":
            torch.cuda.empty_cache()
        if not self._job.check_only:
            take_workspaces(self._job.device)
        case = self._job.case_list()[number]
        self._made = inputs.make_inputs(self._job.operator, self._spec, case, self._job.device, self._job.seed)
        self._sheet = sheet_of(self._spec, case, self._made, self._job.device)
        return self._sheet.output_bytes

    def refusal(self, name: str) -> str | None:
        """Its own reason for not answering the case."""
        return refusal(self._contender(name), self._at_hand.case)

    def prepare(self, name: str) -> tuple[float, float] | Fault:
        """``prepare`` and the first call, in ns."""
        contender = self._contender(name)
        try:
            self._ready[name] = prepared = self._prepared(contender)
        except Exception as error:
            fault = as_fault(error, self._job.device, contender.tree.root)
            clean_up(self._at_hand)
            return fault
        return prepared.prepare_ns, prepared.first_run_ns

    def _prepared(self, contender: Contender) -> Prepared:
        """Weighed by torch's allocator alone: what NCCL takes it takes for the group, at the first call of any."""
        if self._job.check_only:
            return prepare(contender, self._at_hand.held, self._job.device)
        prepared = prepare_weighed(contender, self._at_hand.held, self._job.device)
        return replace(prepared, kept=replace(prepared.kept, elsewhere=0))

    def renew(self, number: int) -> None:
        """Change the inputs in place for a sitting of the referee, and ask the oracle again."""
        sheet = self._at_hand
        fresh = inputs.make_inputs(
            self._job.operator, self._spec, sheet.case, self._job.device, self._job.seed + number
        )
        self._sheet = renewed(sheet, self._made, fresh, REFEREE.sittings[number])

    def judge(self, name: str, number: int, calls_after: int) -> Accuracy | Fault:
        """Judge an implementation in a sitting, with just so many calls after the first."""
        sitting = REFEREE.sittings[number]
        rules = replace(REFEREE, agreed=calls_after)
        found, fault, grown = judged_and_grown(self._ready[name], self._at_hand, rules)
        self._grown.setdefault(name, []).append(grown)
        return found if found is not None else in_sitting(sitting, fault or Fault("incorrect", "no output to judge"))

    def grown(self, name: str) -> bool:
        """Whether memory in use grew in each sitting."""
        return REFEREE.growth(self._grown.get(name, ()), self._at_hand.output_bytes) is not None

    def grows(self, name: str) -> Fault | None:
        """Whether it does with all garbage collected: two calls more."""
        sizes = [growth(self._ready[name], self._job.device) for _ in range(2)]
        complaint: Complaint | None = REFEREE.growth(sizes, self._at_hand.output_bytes)
        return Fault("incorrect", str(complaint)) if complaint else None

    def calls(self, names: Sequence[str], rounds: int) -> list[list[tuple[float, float]]]:
        """(call, host) ns of each in as many rounds, begun together and forth and back."""
        watch = watchable(self._at_hand.output_bytes, len(names), self._job.device)
        self._witnesses = Witnesses([self._ready[name].run for name in names], watch)
        with calls.quiet():
            return self._at_trains.calls(self._witnesses, rounds)

    def collect(self, orders: Sequence[Sequence[int]], spins: Sequence[float]) -> list[list[Sample]]:
        """Timed rounds of those that ``calls`` was asked of, by their places."""
        assert self._witnesses is not None
        with calls.quiet():
            return self._at_trains.collect(self._witnesses, orders, spins)

    def floor(self, rounds: int) -> list[float]:
        """What a call that does nothing reads, in ns."""
        return self._at_trains.floor(rounds)

    def reading(self) -> Reading | None:
        gpu = gpu_handle(self._job.device)
        return gpu.read() if gpu else None

    def compiled(self) -> compiling.Tally:
        return compiling.tally(prepared.contender for prepared in self._ready.values())

    def disturbed(self) -> str:
        """What was changed during the timed rounds that is not the implementations' own; it is put back."""
        return disturbed(Judged((), {}, {}, self._at_hand))

    def judge_timed(self, name: str, place: int, calls_after: int) -> Fault | None:
        """Judge what timed calls returned, and call once more."""
        assert self._witnesses is not None
        prepared, kept = self._ready[name], self._witnesses.kept[place]
        fault = judged_timed(prepared, kept, self._at_hand, REFEREE)
        kept.clear()
        return judged_once(prepared, self._at_hand, replace(REFEREE, agreed=calls_after))[1] if fault is None else fault

    def kernels(self, name: str) -> tuple[tuple[str, ...], str]:
        """Kernels of one call on this rank, or why they could not be recorded."""
        return self._at_trains.kernels(self._ready[name].run)

    def weight(self, name: str) -> Weight:
        """What it takes of this rank's memory, with what it came to hold in later calls than its first."""
        device = self._job.device
        return weigh(grown_by(self._ready[name], self._grown.get(name, ()), device), device)

    def facts(self, name: str) -> tuple[tuple[KernelResources, ...], str, frozenset[str] | None]:
        """What the compiler gave its kernels, what an autotuner chose, and by which words its kernels are known."""
        opened = self._contender(name).opened
        return opened.resources(), opened.tuned(), opened.own_kernels()

    def _contender(self, name: str) -> Contender:
        found = self._opened[name]
        assert isinstance(found, Contender)
        return found

    @property
    def _at_hand(self) -> Sheet:
        assert self._sheet is not None
        return self._sheet

    @property
    def _at_trains(self) -> Trains:
        assert self._trains is not None
        return self._trains
