"""What there is to rehearse: by operator and back end, without what a note says is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groundspeed.compiler_caches import Note
from groundspeed.errors import UserError
from groundspeed.measure.compiler_use import uses_compiler
from groundspeed.operator import Case
from groundspeed.session import Run
from groundspeed.tree import BACKENDS, Implementation

_COMPILED, _OTHER = 8.0, 1.0  # relative costs of an implementation and case


@dataclass(frozen=True)
class Part:
    """What one worker rehearses: some implementations of an operator on some of its cases.

    ``notes`` are by an implementation's name and a case.
    """

    run: Run
    operator: str
    implementations: tuple[Implementation, ...]
    cases: tuple[Case, ...]
    compiled: bool
    notes: Mapping[tuple[str, Case], Note]

    @property
    def pairs(self) -> int:
        return len(self.implementations) * len(self.cases)

    @property
    def cost(self) -> float:
        return self.pairs * (_COMPILED if self.compiled else _OTHER)


def parts_of(runs: Mapping[str, Run], device: str) -> list[Part]:
    """What has not been rehearsed yet of some operators' runs, in the order to do it; ``device`` is the GPU's name.

    Left out are implementations that compile nothing or keep nothing of it, and operators spread over several GPUs.
    A spec that cannot be used is reported when its turn comes.
    """
    found = []
    for operator, run in runs.items():
        try:
            spec = run.tree.spec(operator)
        except UserError:
            continue
        if spec.world:
            continue
        chosen = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
        compiled = [one for one in chosen if one.backend == "torch" and uses_compiler(one.files)]
        built = [one for one in chosen if one.backend in BACKENDS and one.backend != "torch"]
        cases = run.selection.cases(spec)
        notes = _notes(run, operator, [*compiled, *built], cases, device)
        # Products are tuned for minutes, each case by itself; elsewhere a worker's start outweighs a case.
        pieces = [(case,) for case in cases] if spec.bound == "compute" else [cases]
        found += [_part(run, operator, compiled, piece, notes, compiled=True) for piece in pieces]
        found.append(_part(run, operator, built, cases, notes, compiled=False))
    left = [part for part in found if part.pairs]
    tuned = sorted((part for part in left if part.compiled), key=lambda part: len(part.cases) > 1)
    return _spread(tuned, [part for part in left if not part.compiled])


def _spread(*queues: Sequence[Part]) -> list[Part]:
    """One queue of several, each in its own order and all of them to the end: some want the GPU, others the cores."""
    places = [(number / len(queue), part) for queue in queues for number, part in enumerate(queue)]
    return [part for _, part in sorted(places, key=lambda place: place[0])]


def _notes(
    run: Run, operator: str, chosen: Sequence[Implementation], cases: Sequence[Case], device: str
) -> dict[tuple[str, Case], Note]:
    ours = {one.name: (one.backend, run.tree.implementation_digest(one)) for one in chosen}
    theirs = {case: run.tree.case_digest(operator, case) for case in cases}
    return {(name, case): Note(*code, theirs[case], device) for name, code in ours.items() for case in cases}


def _part(
    run: Run,
    operator: str,
    chosen: Sequence[Implementation],
    cases: Sequence[Case],
    notes: Mapping[tuple[str, Case], Note],
    compiled: bool,
) -> Part:
    """Without implementations and cases of which nothing is left to do."""
    left = {(one.name, case) for one in chosen for case in cases if not notes[one.name, case].is_there()}
    names, open_cases = {name for name, _ in left}, {case for _, case in left}
    return Part(
        run,
        operator,
        tuple(one for one in chosen if one.name in names),
        tuple(case for case in cases if case in open_cases),
        compiled,
        notes,
    )
