"""One run of the suite: which tree, on which device, into which files; and the sweep of one operator in it."""

from __future__ import annotations

import contextlib
import errno
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import msgspec

from groundspeed import git
from groundspeed.errors import UserError
from groundspeed.guests import tree_with_guests
from groundspeed.machine import chosen_device, machine_name
from groundspeed.measure.compiler_use import uses_compiler
from groundspeed.measure.first_call_subset import Wanted, chosen_case
from groundspeed.measure.first_calls import cold_and_warm
from groundspeed.measure.lane import UNATTENDED, Lane, default_place, open_lane, widest_place
from groundspeed.measure.neighbours import Neighbours
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome, Progress, supervise
from groundspeed.operator import Case
from groundspeed.records import SUFFIX, Footer, Header, Measurement, Record, read_records, record_path, write_record
from groundspeed.run_ids import new_run_id
from groundspeed.selection import Selection
from groundspeed.tree import Implementation, Tree

Tell = Callable[[Progress], None]
Say = Callable[[str], None]
_SECONDS_EACH = {"cuda": 0.4, "cpu": 0.5}  # budget of timed rounds for one implementation and case


@dataclass(frozen=True)
class Run:
    """A run of the suite. Its records lie under results/<machine>/records/<run_id>/.

    ``first_call`` names the implementations whose first calls are measured in fresh processes, cold and warm.
    ``matrix`` is what asv's matrix asked for: runs with different ones are of different series.
    ``go_on`` is the command that goes on with it; empty where none was typed that could.
    """

    root: Path
    results: Path
    machine: str
    run_id: str
    device: str
    selection: Selection
    tree: Tree
    commit: git.Commit
    seed: int = 0
    first_call: tuple[Wanted, ...] = ()
    matrix: str = ""
    go_on: str = ""

    def record_path(self, operator: str) -> Path:
        return record_path(self.results, self.machine, self.run_id, operator)


@dataclass(frozen=True)
class Preparation:
    """What went before a sweep: where autotuners' choices are kept, and the seconds that a rehearsal took."""

    tunings: Path | None = None
    seconds: float = 0.0


def open_run(
    root: Path,
    results: Path,
    selection: Selection,
    *,
    impls: Path | None = None,
    commit: str | None = None,
    device: str | None = None,
    run_id: str | None = None,
    machine: str | None = None,
    first_call: tuple[Wanted, ...] = (),
    matrix: str = "",
) -> Run:
    """Begin a run, or go on with one by its id.

    impls
        The folder whose implementation files are measured, under the specs of ``root/impls``; that one by default.
    commit
        The revision those files are of; the checked-out one by default.
    machine
        What its results are kept under; named from all GPUs that are visible by default.

    Raises UserError for a selection that matches nothing, a run id of no run, a device that is not there.
    """
    specs = tree_with_guests(root / "impls")
    tree = specs if impls is None or impls.resolve() == specs.root else Tree(impls, specs=specs)
    selection.check(tree)
    known = git.head(root) if commit is None else git.commit(root, commit)
    device = device or chosen_device()
    machine = machine or machine_name(device)
    measured = known if commit is None or known is not git.NO_COMMIT else git.Commit(commit, "")
    if run_id is not None:
        _check_resumed(results / machine / "records", run_id, measured)
    return Run(
        root=root,
        results=results,
        machine=machine,
        run_id=run_id or new_run_id(known.hash),
        device=device,
        selection=selection,
        tree=tree,
        commit=measured,
        first_call=first_call,
        matrix=matrix,
    )


def _check_resumed(records: Path, run_id: str, commit: git.Commit) -> None:
    """A run is of one commit: what is added to it must be of the same."""
    if run_id not in {folder.name for folder in records.glob("*") if folder.is_dir()}:
        raise UserError(f"no run {run_id!r} under {records}; type: ls there, or run without --resume")
    kept = read_records(sorted((records / run_id).glob(f"*{SUFFIX}")))
    first = next((record for record in kept if isinstance(record, Record)), None)
    if first is not None and first.header.commit != commit.hash:
        was, now = (name[:10] or "no commit" for name in (first.header.commit, commit.hash))
        raise UserError(f"run {run_id} is of {was}, checked out is {now}; check that out, or run without --resume")


def compiles(run: Run, operator: str) -> bool:
    """Whether torch.compile is used by anything that the run measures of an operator."""
    chosen = (one for one in run.tree.implementations(operator) if run.selection.includes(one))
    return uses_compiler(file for one in chosen for file in one.files)


def measure_operator(
    run: Run,
    operator: str,
    progress: Tell = lambda progress: None,
    lane: Lane | None = None,
    say: Say = lambda line: None,
    prepared: Preparation = Preparation(),
) -> Path:
    """Sweep one operator in a supervised worker; its record file is on disk when this returns.

    A record that the run already has is kept as it is. ``lane`` is where it is measured; without one the first visible
    GPU, all of them for an operator that is spread over several, or the CPU, is held for this operator alone. ``say``
    is called with a line on whoever else uses the GPU. ``prepared`` is what a rehearsal left.

    Raises UserError for a spec that cannot be used, for a worker that could not start at all, and when the record
    cannot be written; GpuBusy, which is one, for a GPU that did not become free.
    """
    path = run.record_path(operator)
    if path.exists():
        return path
    spec = run.tree.spec(operator)
    chosen = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
    if not chosen:
        raise UserError(f"{operator}: none of its implementations is selected; type: groundspeed list {operator}")
    cases = run.selection.cases(spec)
    if not cases:
        raise UserError(f"{operator}: none of its cases is selected; type: groundspeed list {operator}")
    with contextlib.ExitStack() as held:
        if lane is None:
            place = widest_place(run.device) if spec.world else default_place(run.device)
            lane = held.enter_context(open_lane(place, UNATTENDED, say, nursery=False))
        record = _swept(run, operator, chosen, cases, progress, lane, say, prepared)
    try:
        write_record(path, record)
    except OSError as error:
        first = "make room and" if error.errno == errno.ENOSPC else "mend that and"
        go_on = f"; {first} type: {run.go_on}" if run.go_on else ""
        raise UserError(f"{operator}: {path} cannot be written: {error.strerror}{go_on}") from error
    return path


def _swept(
    run: Run,
    operator: str,
    chosen: list[Implementation],
    cases: tuple[Case, ...],
    progress: Tell,
    lane: Lane,
    say: Say,
    prepared: Preparation,
) -> Record:
    """Measure in a lane, and look before and after who else was there."""
    before = lane.before(say)
    started = datetime.now(UTC)
    job = msgspec.structs.replace(job_of(run, operator, chosen, cases), tunings=str(prepared.tunings or ""))
    outcome = supervise(job, lane.workers.environment, progress, workers=lane.workers)
    if outcome.environment is None:
        raise UserError(outcome.problem or f"{operator}: the worker ended before it began")
    record = _record(run, operator, chosen, cases, outcome, started, prepared.seconds)
    if run.first_call and not run.tree.spec(operator).world:  # a first call of several ranks has several processes
        record = _with_first_calls(run, record, chosen, cases, progress, lane)
    return _with_neighbours(record, before.worse(lane.after()))


def _with_first_calls(
    run: Run, record: Record, chosen: list[Implementation], cases: tuple[Case, ...], progress: Tell, lane: Lane
) -> Record:
    """Measure them for those of the subset that passed; a row each, at its case."""
    began = monotonic()
    operator = record.header.operator
    rows = list(record.measurements)
    for index, row in enumerate(rows):
        case = Case.of(row.dtype, row.shape)
        if row.status != "ok" or chosen_case(run.first_call, operator, row.implementation, cases) != case:
            continue
        (implementation,) = (one for one in chosen if one.name == row.implementation)

        def tell(which: str, row: Measurement = row, number: int = cases.index(case), done: int = index) -> None:
            phase = f"first call, {which}"
            progress(Progress(operator, phase, number, len(cases), row.implementation, done, len(rows)))

        job = job_of(run, operator, [implementation], (case,))
        found = cold_and_warm(job, lane.workers.environment, tell, lane.workers.check)
        notes = [*row.notes, found.problem] if found.problem else row.notes
        rows[index] = msgspec.structs.replace(row, first_call_cold=found.cold, first_call_warm=found.warm, notes=notes)
    spent = round(monotonic() - began, 3)
    seconds = {**record.footer.seconds, "first call": spent, "total": record.footer.seconds["total"] + spent}
    return Record(record.header, tuple(rows), Footer(record.footer.end, seconds))


def _with_neighbours(record: Record, seen: Neighbours) -> Record:
    """A GPU that others worked on makes every time on it doubtful; one that they only sat on is worth a note."""
    if not seen.present:
        return record
    environment = msgspec.structs.replace(record.header.environment, other_processes=seen.processes)
    header = msgspec.structs.replace(record.header, environment=environment)
    rows = tuple(row if row.status != "ok" else _marked(row, seen) for row in record.measurements)
    return Record(header, rows, record.footer)


def _marked(row: Measurement, seen: Neighbours) -> Measurement:
    said = f"the GPU was not ours alone: {seen}"
    if not seen.working:
        return msgspec.structs.replace(row, notes=[*row.notes, said])
    return msgspec.structs.replace(row, unstable="; ".join(filter(None, (row.unstable, said))))


def _metered(run: Run, operator: str, cases: tuple[Case, ...]) -> Collection[Case]:
    """The cases whose energy is measured. It takes more than a second each: the full tier has no time for all.

    There it is the case of tier core with the most work: of a GPU that is busy a joule says the most.
    """
    if run.selection.energy:
        return cases
    if run.selection.tier != "full":
        return ()
    spec = run.tree.spec(operator)
    known = [case for case in spec.tier_cases("core") if case in cases]
    return (max(known, key=spec.work),) if known else ()


def job_of(
    run: Run, operator: str, chosen: list[Implementation], cases: tuple[Case, ...], check_only: bool = False
) -> Job:
    """A worker's job in a run."""
    metered = _metered(run, operator, cases)
    return Job(
        operator=operator,
        tree=str(run.tree.root),
        specs=str(run.tree.spec_tree.root),
        device=run.device,
        implementations=tuple(one.name for one in chosen),
        cases=tuple((case.dtype, case.shape) for case in cases),
        check_only=check_only,
        seconds=_SECONDS_EACH[run.device],
        seed=run.seed,
        timer=run.selection.timer,
        energy=tuple(number for number, case in enumerate(cases) if case in metered),
    )


def _record(
    run: Run,
    operator: str,
    chosen: list[Implementation],
    cases: tuple[Case, ...],
    outcome: Outcome,
    started: datetime,
    rehearsal: float,
) -> Record:
    spec = run.tree.spec(operator)
    assert outcome.environment is not None
    rows = [
        _with_digests(
            run, outcome.rows.get((number, one.name)) or _never_run(case, one.name, outcome.problem), case, one
        )
        for number, case in enumerate(cases)
        for one in chosen
    ]
    header = Header(
        run_id=run.run_id,
        operator=operator,
        machine=run.machine,
        started=started.isoformat(timespec="seconds"),
        environment=outcome.environment,
        commit=run.commit.hash,
        commit_time=run.commit.time,
        dirty=run.commit.dirty,
        tier=run.selection.tier,
        seed=run.seed,
        bound=spec.bound,
        ladders={name: list(rungs) for name, rungs in spec.ladders.items()},
        ideas={one.name: one.idea for one in chosen},
        missing=dict(spec.missing),
        ceilings=outcome.ceilings,
        command=_command(run, operator),
        matrix=run.matrix,
        rehearsal_s=round(rehearsal, 3),
    )
    seconds = {name: round(value, 3) for name, value in outcome.seconds.items()}
    seconds["total"] = round((datetime.now(UTC) - started).total_seconds(), 3)
    return Record(header, tuple(rows), Footer(len(rows), seconds))


def _never_run(case: Case, name: str, problem: str) -> Measurement:
    reason = problem or "the worker ended before its turn"
    return Measurement(name, case.dtype, case.dims, "failed", failure="crash", reason=reason)


def _with_digests(run: Run, row: Measurement, case: Case, implementation: Implementation) -> Measurement:
    """A worker that died took the digests with it, and a failure belongs to its series too."""
    if row.case_digest and row.implementation_digest:
        return row
    return msgspec.structs.replace(
        row,
        case_digest=run.tree.case_digest(implementation.operator, case),
        implementation_digest=run.tree.implementation_digest(implementation),
    )


def _command(run: Run, operator: str) -> str:
    """What to type for this sweep alone."""
    whole = all(map(run.selection.includes, run.tree.implementations(operator)))
    only = [operator] if whole else [f"{operator}/{name}" for name in dict.fromkeys(run.selection.implementations)]
    words = ["groundspeed", "run", *(word for name in only for word in ("--only", name))]
    words += ["--tier", run.selection.tier]
    if run.selection.dtypes:
        words += ["--dtype", ",".join(run.selection.dtypes)]
    words += ["--timer", run.selection.timer] if run.selection.timer else []
    words += ["--energy"] if run.selection.energy else []
    words += ["--first-call", "cold"] if run.first_call else []
    return shlex.join(words)
