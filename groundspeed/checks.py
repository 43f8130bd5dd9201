"""Correctness without timing: every selected implementation on every check case of an operator.

Nothing is timed, so the cases of an operator can be judged side by side: on a GPU several workers share them out,
which hides most of what torch.compile takes for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from groundspeed.errors import UserError
from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome, Progress, supervise
from groundspeed.operator import Case
from groundspeed.records import Measurement
from groundspeed.session import Run, job_of
from groundspeed.tree import Implementation

Tell = Callable[[Progress], None]

_MAX_WORKERS = 12  # each holds a context of some 500 MB on the GPU


@dataclass(frozen=True)
class _Share:
    """What one worker judges: some implementations on some of the cases, with the variables it needs."""

    job: Job
    numbers: tuple[int, ...]
    variables: dict[str, str]


def check_operator(run: Run, operator: str, progress: Tell = lambda progress: None) -> list[Measurement]:
    """Judge an operator; a row for each implementation and check case, in the order of both.

    Without a GPU, Triton files are judged in its interpreter, in a worker of their own: the variable must be set
    before anything of Triton is imported. Raises UserError for a spec that cannot be used and for a worker that
    could not start.
    """
    spec = run.tree.spec(operator)
    chosen = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
    cases = tuple(case for case in spec.check_cases if not run.selection.dtypes or case.dtype in run.selection.dtypes)
    shares = _shares(run, operator, chosen, cases)
    tally = _Tally(progress, expected=len(chosen) * len(cases))
    with ThreadPoolExecutor(len(shares) if run.device == "cuda" else 1) as pool:
        outcomes = list(pool.map(lambda share: _supervised(share, tally), shares))
    rows: dict[tuple[int, str], Measurement] = {}
    for share, outcome in zip(shares, outcomes, strict=True):
        if outcome.environment is None and outcome.problem:
            raise UserError(outcome.problem)
        rows |= {(share.numbers[number], name): row for (number, name), row in outcome.rows.items()}
    return [rows[number, one.name] for one in chosen for number in range(len(cases)) if (number, one.name) in rows]


def _shares(run: Run, operator: str, chosen: list[Implementation], cases: tuple[Case, ...]) -> list[_Share]:
    interpreted = [one for one in chosen if run.device == "cpu" and one.backend == "triton"]
    compiled = [one for one in chosen if one not in interpreted]
    workers = max(1, min(_MAX_WORKERS, os.cpu_count() or 1)) if run.device == "cuda" else 1
    shares = []
    for group, variables in ((compiled, {}), (interpreted, {"TRITON_INTERPRET": "1"})):
        for start in range(workers if group else 0):
            numbers = tuple(range(start, len(cases), workers))
            if numbers:
                job = job_of(run, operator, group, tuple(cases[number] for number in numbers), check_only=True)
                shares.append(_Share(job, numbers, variables))
    return shares


def _supervised(share: _Share, tally: _Tally) -> Outcome:
    key = id(share)
    return supervise(share.job, worker_environment(share.variables), lambda progress: tally.take(key, progress))


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
