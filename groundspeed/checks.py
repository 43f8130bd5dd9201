"""Correctness without timing: every selected implementation on every check case.

Nothing is timed, so cases can be judged side by side: a pool of workers shares them out, those of one operator and
those of different ones alike. A worker takes seconds to start and torch.compile takes seconds a case, so a share is
cut by what it is expected to cost, not by operators.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.cores import usable_cores
from groundspeed.errors import UserError
from groundspeed.measure.lane import default_place
from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome, Progress, supervise
from groundspeed.measure.workers import Workers
from groundspeed.operator import Case
from groundspeed.records import Environment, Footer, Header, Measurement, Record, check_path, write_record
from groundspeed.session import Run, job_of
from groundspeed.tree import Implementation

Tell = Callable[[Progress], None]

_MAX_WORKERS = 24  # each holds a context of some 500 MB on the GPU
# Relative costs, from a check of 17 operators on an H200: a compiled case took 1 to 4 s, any other some 0.1 s, and a
# worker about as long to start as 100 of the latter. That was before workers were forked; forked ones were not timed.
_COMPILED, _OTHER, _START = 15, 1, 100


@dataclass(frozen=True)
class Checked:
    """What came out for one operator: a row for each implementation and check case in the order of both, or why not."""

    operator: str
    rows: Sequence[Measurement]
    problem: str = ""
    environment: Environment | None = None  # None where no worker began


def keep(run: Run, checked: Checked, started: datetime) -> Path:
    """Keep what came out beside the records, for ``groundspeed check --stored``: one file an operator and check.

    Raises OSError when it cannot be written.
    """
    assert checked.environment is not None, checked.operator
    header = Header(
        run_id=run.run_id,
        operator=checked.operator,
        machine=run.machine,
        started=started.isoformat(timespec="seconds"),
        environment=checked.environment,
        commit=run.commit.hash,
        commit_time=run.commit.time,
        dirty=run.commit.dirty,
        seed=run.seed,
    )
    path = check_path(run.results, run.machine, run.run_id, checked.operator)
    write_record(path, Record(header, tuple(checked.rows), Footer(len(checked.rows))))
    return path


@dataclass(frozen=True)
class _Share:
    """What one worker judges: some implementations on some of the cases, with the variables it needs."""

    job: Job
    numbers: tuple[int, ...]
    variables: dict[str, str]


@dataclass(frozen=True)
class _Group:
    """Implementations of one operator that one worker can judge together, before the cases are shared out."""

    run: Run
    operator: str
    names: tuple[Implementation, ...]
    variables: dict[str, str]
    cases: tuple[Case, ...]

    @property
    def cost(self) -> int:
        return len(self.cases) * sum(_cost(one, self.run.device) for one in self.names)


def _cost(implementation: Implementation, device: str) -> int:
    library = LIBRARIES.get(implementation.backend)
    if library is not None and library.absent(device):
        return 0  # its rows say so, and nothing else is done
    return _COMPILED if "compile" in implementation.name else _OTHER


def check_operators(runs: Sequence[Run], progress: Tell = lambda progress: None) -> Iterator[Checked]:
    """Judge operators, each ``run`` narrowed to one; yield each as it is finished.

    Without a GPU, Triton files are judged in its interpreter, in a worker of their own: the variable must be set
    before anything of Triton is imported. A spec that cannot be used and a worker that could not start are the
    operator's ``problem``.
    """
    planned: dict[str, list[_Group]] = {}
    for run in runs:
        (operator,) = run.selection.operators
        try:
            planned[operator] = _groups(run, operator)
        except UserError as error:
            yield Checked(operator, [], str(error))
    workers = max(1, min(_MAX_WORKERS, usable_cores()))
    total = sum(group.cost for groups in planned.values() for group in groups)
    # Shares below a worker's start buy nothing; larger ones leave workers idle.
    target = max(_START // 2, total // workers) if workers > 1 else max(1, total)
    shares = {operator: _shares(groups, min(target, 3 * _START), workers) for operator, groups in planned.items()}
    tally = _Tally(progress, sum(_pairs(groups) for groups in planned.values()))
    done: queue.SimpleQueue[tuple[str, _Share, Outcome | BaseException]] = queue.SimpleQueue()

    def judge(operator: str, share: _Share) -> None:
        try:
            done.put((operator, share, _supervised(share, tally, nurseries[_key(share)])))
        except BaseException as error:
            done.put((operator, share, error))

    left = {operator: len(parts) for operator, parts in shares.items()}
    found: dict[str, list[tuple[_Share, Outcome]]] = {operator: [] for operator in shares}
    with contextlib.ExitStack() as stack:
        nurseries = _nurseries([share for parts in shares.values() for share in parts], stack)
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        for operator, parts in shares.items():
            for share in parts:
                pool.submit(judge, operator, share)
        try:
            yield from (Checked(operator, []) for operator, count in left.items() if not count)
            for _ in range(sum(left.values())):
                operator, share, outcome = done.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                found[operator].append((share, outcome))
                left[operator] -= 1
                if not left[operator]:
                    yield _gathered(operator, planned[operator], found.pop(operator))
        finally:
            # At once when interrupted: shares not begun are dropped, workers at work are killed.
            pool.shutdown(wait=False, cancel_futures=True)
            for one in nurseries.values():
                one.stop()


def _groups(run: Run, operator: str) -> list[_Group]:
    spec = run.tree.spec(operator)
    chosen = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
    cases = tuple(case for case in spec.check_cases if not run.selection.dtypes or case.dtype in run.selection.dtypes)
    interpreted = tuple(one for one in chosen if run.device == "cpu" and one.backend == "triton")
    others = tuple(one for one in chosen if one not in interpreted)
    interpreter = {"TRITON_INTERPRET": "1"}
    parts: list[tuple[tuple[Implementation, ...], dict[str, str]]] = [(others, {}), (interpreted, interpreter)]
    if run.device == "cuda":
        compiled = tuple(one for one in others if "compile" in one.name)
        # A GPU by name: a nursery that was given none asks the driver, and then may not have the compiler imported.
        given = {} if spec.world else default_place(run.device).variables
        parts = [(compiled, given), (tuple(one for one in others if one not in compiled), given)]
    return [_Group(run, operator, names, variables, cases) for names, variables in parts if names and cases]


def _pairs(groups: Sequence[_Group]) -> int:
    return sum(len(group.cases) * len(group.names) for group in groups)


def _shares(groups: Sequence[_Group], target: int, workers: int) -> list[_Share]:
    shares = []
    for group in groups:
        parts = max(1, min(len(group.cases), workers, math.ceil(group.cost / target)))
        for start in range(parts):
            numbers = tuple(range(start, len(group.cases), parts))
            chosen = tuple(group.cases[number] for number in numbers)
            job = job_of(group.run, group.operator, list(group.names), chosen, check_only=True)
            shares.append(_Share(job, numbers, group.variables))
    return shares


def _gathered(operator: str, groups: Sequence[_Group], outcomes: Sequence[tuple[_Share, Outcome]]) -> Checked:
    rows: dict[tuple[int, str], Measurement] = {}
    for share, outcome in outcomes:
        if outcome.environment is None and outcome.problem:
            return Checked(operator, [], outcome.problem)
        rows |= {(share.numbers[number], name): row for (number, name), row in outcome.rows.items()}
    environment = next(outcome.environment for _, outcome in outcomes if outcome.environment is not None)
    named = {one.name for group in groups for one in group.names}
    run = groups[0].run
    names = [one.name for one in run.tree.implementations(operator) if one.name in named]
    numbers = range(len(groups[0].cases))
    found = [rows[number, name] for name in names for number in numbers if (number, name) in rows]
    return Checked(operator, found, environment=environment)


def _supervised(share: _Share, tally: _Tally, workers: Workers) -> Outcome:
    key = id(share)
    return supervise(share.job, workers.environment, lambda progress: tally.take(key, progress), workers=workers)


def _key(share: _Share) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(share.variables.items()))


def _nurseries(shares: Sequence[_Share], stack: contextlib.ExitStack) -> dict[tuple[tuple[str, str], ...], Workers]:
    """Where the workers of each environment come from: imports are done once, unless one worker is all there is."""
    found: dict[tuple[tuple[str, str], ...], list[_Share]] = {}
    for share in shares:
        found.setdefault(_key(share), []).append(share)
    return {
        key: stack.enter_context(
            Workers(
                worker_environment(same[0].variables),
                compiler=any("compile" in name for share in same for name in share.job.implementations),
                nursery=len(same) > 1,
            )
        )
        for key, same in found.items()
    }


class _Tally:
    """Adds up the progress of workers that run side by side."""

    def __init__(self, progress: Tell, expected: int) -> None:
        self._progress, self._expected = progress, expected
        self._rows: dict[int, int] = {}
        self._lock = Lock()

    def take(self, key: int, progress: Progress) -> None:
        with self._lock:
            self._rows[key] = progress.rows
            self._progress(replace(progress, rows=sum(self._rows.values()), rows_expected=self._expected))
