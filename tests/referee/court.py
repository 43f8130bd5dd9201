"""Puts implementations of the gallery before the referee, on the path that a run takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from groundspeed.measure import inputs
from groundspeed.measure.bench import Bench, Fault
from groundspeed.measure.case import measure_case
from groundspeed.measure.contender import Contender
from groundspeed.measure.judging import Judged, judge_case
from groundspeed.measure.opening import open_all
from groundspeed.measure.protocol import Job
from groundspeed.measure.referee import REFEREE, Referee
from groundspeed.measure.sampling import exactly
from groundspeed.measure.timers.base import Fitted, Sample
from groundspeed.measure.timers.clock import ClockTimer
from groundspeed.operator import Case
from groundspeed.records import Measurement
from groundspeed.tree import Tree

HERE = Path(__file__).parent
IMPLS = Tree(HERE.parents[1] / "impls")
GALLERY = Tree(HERE / "gallery")
FAULTY = Tree(HERE / "faulty", specs=IMPLS)  # of real operators, judged under their own specs


class InstantTimer:
    """Says that everything took a nanosecond."""

    name = "instant"
    sees_kernels = False

    def fit(self, runs):
        return Fitted(self)

    def collect(self, runs, orders, host_ns):
        return [[Sample(1.0, 1.0) for _ in runs] for _ in orders]


class QuickClock(ClockTimer):
    """The CPU's timer without the read that empties the caches: nobody looks at the times here."""

    def __init__(self) -> None:
        self._evict = torch.ones(1)


def bench(device: str = "cpu", **changes) -> Bench:
    """A bench to judge on; its timer is for show."""
    return dataclasses.replace(Bench(device, InstantTimer(), exactly(6)), **changes)


def timing_bench(device: str = "cpu") -> Bench:
    """A bench whose timer calls what it times."""
    if device == "cuda":
        from groundspeed.measure.timers.cupti import CuptiTimer

        return bench(device, timer=CuptiTimer(torch.device("cuda", torch.cuda.current_device())))
    return bench(device, timer=QuickClock())


def contenders(tree: Tree, operator: str, *names: str, device: str = "cpu") -> list[Contender | Fault]:
    job = Job(operator, str(tree.root), str(tree.spec_tree.root), device, names, (), check_only=True)
    return list(open_all(job, tree, lambda name: None).values())


def judged(
    tree: Tree, operator: str, names: tuple[str, ...], case: Case, rules: Referee = REFEREE, device: str = "cpu"
) -> Judged:
    opened = contenders(tree, operator, *names, device=device)
    refused = [one for one in opened if isinstance(one, Fault)]
    assert not refused, refused
    spec = tree.spec(operator)
    with one_thread():
        made = inputs.make_inputs(operator, spec, case, device, 0)
        return judge_case(bench(device), operator, spec, case, opened, made, rules)


def verdict(tree: Tree, operator: str, name: str, case: Case, rules: Referee = REFEREE, device: str = "cpu") -> str:
    """The complaint, or nothing when the implementation passed."""
    found = judged(tree, operator, (name,), case, rules, device)
    assert (name in found.faults) != (name in {one.contender.name for one in found.ready})
    return found.faults[name].reason if name in found.faults else ""


def measured(tree: Tree, operator: str, names: tuple[str, ...], case: Case, of: Bench) -> list[Measurement]:
    opened = contenders(tree, operator, *names, device=of.device)
    with one_thread():
        return list(measure_case(of, operator, tree.spec(operator), case, opened, ""))


def without(*names: str) -> Referee:
    """The referee without these checks."""
    known = {check.__name__ for check in REFEREE.checks}
    assert set(names) <= known, f"no such checks: {set(names) - known}"
    return dataclasses.replace(REFEREE, checks=tuple(c for c in REFEREE.checks if c.__name__ not in names))


def but(**changes) -> Referee:
    """The referee with some of its ways changed."""
    return dataclasses.replace(REFEREE, **changes)


@contextmanager
def one_thread() -> Iterator[None]:
    """Small tensors on a busy machine: a second thread costs a thousand times what it brings."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)
