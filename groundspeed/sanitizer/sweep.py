"""Which implementations and cases are watched, in how many processes, and what is concluded of each.

Each implementation runs all its cases in one process. Only one in which the tool finds something is run once more, each
case in a process of its own: a log says in which kernel and line an error was, and not in which call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Literal

from msgspec import structs

from groundspeed.operator import Case, Operator
from groundspeed.sanitizer.log import Report, distinct
from groundspeed.sanitizer.protocol import Declined, Finished, Raised, Ran, Request
from groundspeed.sanitizer.tool import Watched, watch
from groundspeed.tree import Implementation, Tree

# racecheck follows every access to shared memory one by one: larger check shapes would take minutes each. Of an
# implementation that takes none but these the smallest is watched all the same: else its races would never be found.
RACECHECK_BYTES = 4 << 20
RACECHECK_FLOPS = 20_000_000

State = Literal["clean", "errors", "failed", "skipped", "unknown"]
Watch = Callable[[Request], Watched]


@dataclass(frozen=True)
class Finding:
    """One report and the labels of the cases in which it came; none where no case alone brought it about."""

    report: Report
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What is known of one implementation.

    state
        ``clean``; ``errors`` found by the tool; ``failed`` where it raised, crashed or hung; ``skipped`` where it
        answers none of the cases; ``unknown`` where the tool did not watch it to its end.
    reason
        Of failed, skipped and unknown.
    ran
        Labels of the cases that ran to their end.
    left_out
        Cases over the tool's limit that were not run.
    smallest
        Label of the one over the limit that was, of an implementation that takes no other; else empty.
    """

    implementation: Implementation
    state: State
    reason: str = ""
    errors: int = 0
    warnings: int = 0
    findings: tuple[Finding, ...] = ()
    ran: tuple[str, ...] = ()
    left_out: int = 0
    smallest: str = ""

    @property
    def label(self) -> str:
        return f"{self.implementation.operator}/{self.implementation.name}"


def sweep(
    tree: Tree,
    chosen: Sequence[Implementation],
    tool: Path,
    check: str,
    jobs: int,
    variables: dict[str, str] | None = None,
) -> Iterator[Verdict]:
    """Watch implementations, ``jobs`` processes side by side; verdicts come in the order of ``chosen``.

    ``variables`` are added to each process's environment.
    Raises SpecError for a spec that cannot be used. Whoever stops asking for verdicts ends what still runs.
    """
    specs = {operator: tree.spec(operator) for operator in dict.fromkeys(one.operator for one in chosen)}
    stop = Event()
    slots: SimpleQueue[int] = SimpleQueue()
    for slot in range(jobs):
        slots.put(slot)

    def in_a_slot(request: Request) -> Watched:
        slot = slots.get()
        try:
            return watch(tool, check, structs.replace(request, variables=variables or {}), slot, stop)
        finally:
            slots.put(slot)

    with ThreadPoolExecutor(jobs) as pool, ThreadPoolExecutor(jobs) as alone:
        try:
            yield from pool.map(lambda one: examine(tree, specs[one.operator], one, check, in_a_slot, alone), chosen)
        finally:
            stop.set()


def examine(
    tree: Tree,
    spec: Operator,
    implementation: Implementation,
    check: str,
    run: Watch,
    pool: ThreadPoolExecutor | None = None,
) -> Verdict:
    """One implementation on its operator's check cases; ``pool`` runs the cases one by one side by side."""
    cases = [case for case in spec.check_cases if not is_over(spec, case, check)]
    over = [case for case in spec.check_cases if is_over(spec, case, check)]
    if cases:
        whole = run(_request(tree, implementation, cases))
        if whole.log.errors or whole.log.warnings:
            requests = [_request(tree, implementation, [case]) for case in cases]
            each = list(pool.map(run, requests) if pool else map(run, requests))
            return _with_cases(implementation, whole, each, len(over))
        verdict = _conclude(implementation, whole, len(over))
        if verdict.state != "skipped" or not over:
            return verdict
    return _smallest(tree, spec, implementation, over, run)


def _smallest(tree: Tree, spec: Operator, implementation: Implementation, over: Sequence[Case], run: Watch) -> Verdict:
    """Of one that takes no case within the limit: the smallest over it that it does take."""
    ascending = sorted(over, key=lambda case: times_the_limit(spec, case))
    seen = run(structs.replace(_request(tree, implementation, ascending), first_only=True))
    declined = {event.case for event in seen.events if isinstance(event, Declined)}
    taken = "" if seen.last_case in declined else seen.last_case
    left_out = len(over) - len(declined) - bool(taken)
    if seen.log.errors or seen.log.warnings:
        verdict = _with_cases(implementation, seen, [seen], left_out)
    else:
        verdict = _conclude(implementation, seen, left_out)
    if seen.ended and verdict.state == "failed":  # its size explains that as well as a hang does
        verdict = replace(verdict, state="unknown")
    return replace(verdict, smallest=taken)


def is_over(spec: Operator, case: Case, check: str) -> bool:
    """Whether a check leaves out a case that is not the only one."""
    return check == "racecheck" and times_the_limit(spec, case) > 1


def times_the_limit(spec: Operator, case: Case) -> float:
    """How large a case is for racecheck."""
    return max(spec.traffic(case).total / RACECHECK_BYTES, spec.flop_count(case) / RACECHECK_FLOPS)


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """0 all that could run is clean, 1 errors were found or something failed, 2 something could not be watched."""
    states = {verdict.state for verdict in verdicts}
    if states & {"errors", "failed"}:
        return 1
    return 0 if "clean" in states and "unknown" not in states else 2


def _conclude(implementation: Implementation, seen: Watched, left_out: int) -> Verdict:
    """Of a process in which the tool found nothing."""
    ran = tuple(event.case for event in seen.events if isinstance(event, Ran))
    raised = next((event for event in seen.events if isinstance(event, Raised)), None)

    def verdict(state: State, reason: str = "") -> Verdict:
        return Verdict(implementation, state, reason, ran=ran, left_out=left_out)

    if seen.ended:
        return verdict("failed", f"{seen.ended}, in {seen.last_case or 'loading'}")
    if seen.log.problem:  # before what the process says: an unwatched device refuses even an allocation
        return verdict("unknown", seen.log.problem)
    if raised:
        return verdict("failed", f"{raised.case or 'loading'}: {raised.message}")
    said = f": {seen.said}" if seen.said else ""
    if not seen.events and not seen.log.complete:
        return verdict("unknown", f"the tool did not run it{said}")
    if not any(isinstance(event, Finished) for event in seen.events):
        return verdict("failed", f"the process ended early, in {seen.last_case or 'loading'}{said}")
    if not seen.log.complete:
        return verdict("unknown", "the tool wrote no summary")
    if not ran:
        declined = next(event.reason for event in seen.events if isinstance(event, Declined))
        return verdict("skipped", declined)
    return verdict("clean")


def _with_cases(implementation: Implementation, whole: Watched, each: Sequence[Watched], left_out: int) -> Verdict:
    """Of one in which the tool found something: every report with the cases that bring it about alone."""
    cases: dict[Report, list[str]] = {report: [] for report in distinct(whole.log.reports)}
    for one in each:
        for report in distinct(one.log.reports):
            cases.setdefault(report, []).append(one.last_case)
    return Verdict(
        implementation,
        "errors",
        errors=max(whole.log.errors, sum(one.log.errors for one in each)),
        warnings=max(whole.log.warnings, sum(one.log.warnings for one in each)),
        findings=tuple(Finding(report, tuple(found)) for report, found in cases.items()),
        ran=tuple(one.last_case for one in each if any(isinstance(event, Ran) for event in one.events)),
        left_out=left_out,
    )


def _request(tree: Tree, implementation: Implementation, cases: Sequence[Case]) -> Request:
    return Request(
        tree=str(tree.root),
        operator=implementation.operator,
        implementation=implementation.name,
        cases=tuple((case.dtype, case.shape) for case in cases),
    )
