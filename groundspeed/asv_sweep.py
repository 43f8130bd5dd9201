"""The one sweep of an operator that answers all of asv's questions about it, and where its record lies.

What to measure comes through variables, because asv hands ``setup_cache`` neither ``--bench`` nor ``--quick``: the
GROUNDSPEED_* variables of groundspeed.selection from the user, and from the environment (groundspeed.asv_environment)
the commit, its implementation files, the results folder and the run to add to.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from groundspeed import session
from groundspeed.compiler_caches import tunings_of
from groundspeed.errors import UserError, kind_and_line
from groundspeed.machine import chosen_device
from groundspeed.measure.first_call_subset import read_subset
from groundspeed.measure.lane import UNATTENDED, Lane, default_place, open_lane
from groundspeed.measure.supervisor import Progress
from groundspeed.rehearsal import occasion, performance
from groundspeed.rehearsal.parts import Part
from groundspeed.selection import VARIABLES, Selection, chosen_first_call
from groundspeed.session import Run
from groundspeed.tree import Tree

COMMIT = "GROUNDSPEED_COMMIT"
IMPLS = "GROUNDSPEED_IMPLS"
RESULTS = "GROUNDSPEED_RESULTS"
# A file that holds the run's id once its first operator is measured: asv starts a process for each operator, and
# all of them belong to one run.
RUN_FILE = "GROUNDSPEED_RUN_FILE"
MATRIX = "GROUNDSPEED_MATRIX"  # what asv.conf.json's matrix asked for, in the words of asv's result files

DEFAULT_TIER = {"cuda": "core", "cpu": "small"}

_SECONDS_BETWEEN_LINES = 1.0


@dataclass(frozen=True)
class Swept:
    """The record that a sweep left, or why there is none; ``failed`` tells a fault from nothing to measure.

    left_out
        What the tier and the variables kept out of the record, in one line; empty when nothing.
    """

    record: str | None
    reason: str = ""
    failed: bool = False
    left_out: str = ""


def sweep(root: Path, operator: str, environment: Mapping[str, str] = os.environ) -> Swept:
    """Measure every selected implementation and case of an operator. Never raises: the fault is in what it returns."""
    try:
        return _sweep(root, operator, environment)
    except UserError as error:
        return Swept(None, str(error), failed=True)
    except Exception as error:
        traceback.print_exc()
        shown = f"{operator}: the sweep ended with {kind_and_line(error)}"
        return Swept(None, f"{shown}; for the traceback type: asv run --verbose --bench {operator}", failed=True)


def _sweep(root: Path, operator: str, environment: Mapping[str, str]) -> Swept:
    selection = Selection.from_environment(environment, tier=DEFAULT_TIER[chosen_device()])
    specs = Tree(root / "impls")
    impls = Path(environment[IMPLS]) if IMPLS in environment else specs.root
    tree = Tree(impls, specs=specs)
    narrowed = _narrow(selection, tree, operator)
    if isinstance(narrowed, str):
        return Swept(None, f"{operator}: {narrowed}")
    run_file = Path(environment[RUN_FILE]) if RUN_FILE in environment else None
    run = session.open_run(
        root,
        Path(environment.get(RESULTS) or root / "results"),
        narrowed,
        impls=impls,
        commit=environment.get(COMMIT),
        run_id=run_file.read_text() if run_file and run_file.exists() else None,
        first_call=read_subset(root) if chosen_first_call(environment) else (),
        matrix=environment.get(MATRIX, ""),
    )
    if run_file and not run_file.exists():
        run.record_path(operator).parent.mkdir(parents=True, exist_ok=True)
        run_file.write_text(run.run_id)
    with ExitStack() as held:
        lane, prepared = _rehearsed(run, operator, held)
        record = session.measure_operator(run, operator, _printer(), lane=lane, say=print, prepared=prepared)
    return Swept(str(record), left_out=_left_out(narrowed, tree, operator))


def _rehearsed(run: Run, operator: str, held: ExitStack) -> tuple[Lane | None, session.Preparation]:
    """Compile and tune beforehand where that is worth it: the lane until ``held`` ends, and what it left."""
    place = default_place(run.device)
    if place.gpu is None:
        return None, session.Preparation()
    tunings = tunings_of(place.gpu.name)
    parts = occasion.worthwhile({operator: run}, place)
    if not parts:
        return None, session.Preparation(tunings)
    lane = held.enter_context(open_lane(place, UNATTENDED, print, compiler=any(part.compiled for part in parts)))
    if occasion.undisturbed([lane], print):
        began = time.monotonic()
        _rehearse(operator, parts, lane, tunings)
        return lane, session.Preparation(tunings, time.monotonic() - began)
    return lane, session.Preparation(tunings)


def _rehearse(operator: str, parts: Sequence[Part], lane: Lane, tunings: Path) -> None:
    def tell(part: Part, share: float) -> None:
        print(f"{operator}: {share:.0%} compiled and tuned", flush=True)

    try:
        done = performance.rehearse(parts, [lane], tunings, tell)
    except OSError as error:
        done = performance.Rehearsed(problems=(f"nothing is tuned beforehand: {kind_and_line(error)}",))
    for problem in done.problems:
        print(f"{operator}: {problem}", flush=True)


def _narrow(selection: Selection, tree: Tree, operator: str) -> Selection | str:
    """The selection in this operator's own names, or why it leaves nothing of it.

    A pattern for an implementation that came later, or for another operator's shape, is no fault at this commit.
    """
    if selection.operators and operator not in selection.operators:
        return "left out by GROUNDSPEED_OPERATORS"
    cases = selection.cases(tree.spec(operator))
    if not cases:
        return f"left out by tier {selection.tier}, GROUNDSPEED_DTYPES or GROUNDSPEED_SHAPES"
    chosen = tuple(one.name for one in tree.implementations(operator) if selection.includes(one))
    if not chosen:
        return "not at this commit, or left out by GROUNDSPEED_IMPLEMENTATIONS"
    shapes = tuple(dict.fromkeys(case.shape_label for case in cases)) if selection.shapes else ()
    return replace(selection, operators=(operator,), implementations=chosen, shapes=shapes)


def _left_out(narrowed: Selection, tree: Tree, operator: str) -> str:
    """What asv asks for and this sweep did not measure, and why; empty when nothing."""
    spec = tree.spec(operator)
    asked, measured = len(spec.bench_cases), len(narrowed.cases(spec))
    today = {one.name for one in tree.spec_tree.implementations(operator)}
    at_commit = {one.name for one in tree.implementations(operator)}
    unselected = at_commit - set(narrowed.implementations)
    parts = [
        f"{asked - measured} of {asked} cases (tier {narrowed.tier}{_variables(narrowed)})" * (measured < asked),
        f"{', '.join(sorted(unselected))} ({VARIABLES['implementations']})" * bool(unselected),
        f"{', '.join(sorted(today - at_commit))} (not at this commit)" * bool(today - at_commit),
    ]
    said = "; ".join(filter(None, parts))
    return f"{operator}: n/a are {said}" if said else ""


def _variables(selection: Selection) -> str:
    named = [VARIABLES[name] for name in ("dtypes", "shapes") if getattr(selection, name)]
    return "".join(f", {name}" for name in named)


def _printer() -> Callable[[Progress], None]:
    """Prints where the sweep is, at most once a second: asv shows a dot for each line, all with --verbose."""
    last = -_SECONDS_BETWEEN_LINES

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            done = f"{progress.rows} of {progress.rows_expected}"
            print(f"{progress.operator}: {done}, {progress.phase} {progress.implementation}", flush=True)

    return show
