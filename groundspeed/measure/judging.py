"""Put the contenders of a case before the referee: prepared, on changing inputs, and again after they were timed."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundspeed.measure import compilations, inputs, referee
from groundspeed.measure.bench import Bench, Fault, as_fault, fault_row
from groundspeed.measure.contender import Contender, Prepared, prepare, prepare_weighed, refusal
from groundspeed.measure.kept import GROWS, take_workspaces
from groundspeed.measure.referee import REFEREE, Complaint, Referee, Sheet, Sitting, Trial, fences, settings, tools
from groundspeed.measure.referee.heap import held_bytes
from groundspeed.operator import Case, Operator, Role
from groundspeed.records import Accuracy, Measurement


@dataclass(frozen=True)
class Judged:
    """Contenders that passed the referee, and the faults of those that did not.

    ``sheet`` is what the inputs hold now, and the oracle's answer to it.
    """

    ready: tuple[Prepared, ...]
    accuracy: Mapping[str, Accuracy]
    faults: Mapping[str, Fault]
    sheet: Sheet


def check_case(
    bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Judge without timing: yield a row for each contender, with its error or its fault."""
    with bench.phase("inputs"):
        compilations.reset()
        made = inputs.make_inputs(operator, spec, case, bench.device, bench.seed)
    verdict = judge_case(bench, operator, spec, case, contenders, made)
    for contender in contenders:
        name = contender.name
        if name in verdict.faults:
            yield fault_row(name, case, digest, verdict.faults[name], contender.digest)
        else:
            yield Measurement(
                implementation=name,
                dtype=case.dtype,
                shape=case.dims,
                status="ok",
                case_digest=digest,
                implementation_digest=contender.digest,
                accuracy=verdict.accuracy[name],
            )


def judge_case(
    bench: Bench,
    operator: str,
    spec: Operator,
    case: Case,
    contenders: Sequence[Contender],
    made: inputs.CaseInputs,
    rules: Referee = REFEREE,
    weigh: bool = False,
) -> Judged:
    """Prepare every contender and judge it in each of the referee's sittings.

    ``made`` are the case's inputs; they are written over in place and hold the last sitting's values afterwards.
    ``weigh`` asks for the memory that each contender keeps.
    """
    book = _Book(bench, rules)
    first, *others = rules.sittings
    with bench.phase("inputs"):
        sheet = sheet_of(spec, case, made, bench.device)
        if weigh:
            take_workspaces(bench.device)
    ready: list[Prepared] = []
    for contender in first.order(contenders):
        outcome = _prepared(bench, contender, sheet, weigh)
        if isinstance(outcome, Fault):
            book.faults[contender.name] = outcome
        elif book.passes(outcome, first, sheet):
            ready.append(outcome)
    for number, sitting in enumerate(others, start=1):
        if ready and sitting.applies(spec, case):
            with bench.phase("inputs"):
                fresh = inputs.make_inputs(operator, spec, case, bench.device, bench.seed + number)
                sheet = renewed(sheet, made, fresh, sitting)
                del fresh
            ready = [prepared for prepared in sitting.order(ready) if book.passes(prepared, sitting, sheet)]
    ready = [book.weighed(prepared) for prepared in ready if book.closes(prepared, sheet)]
    names = [contender.name for contender in contenders]
    ready.sort(key=lambda prepared: names.index(prepared.contender.name))
    return Judged(tuple(ready), book.accuracy, book.faults, sheet)


def judge_again(
    bench: Bench, judged: Judged, timed: Sequence[Sequence[Any]], rules: Referee = REFEREE
) -> dict[str, Fault]:
    """Judge what the timed calls themselves returned, then each contender once more; returns faults by name.

    ``timed[i]`` are outputs of the i-th contender's own timed calls.
    """
    faults: dict[str, Fault] = {}
    for prepared, outputs in zip(judged.ready, timed, strict=True):
        name = prepared.contender.name
        with bench.phase("check", name):
            fault = (
                judged_timed(prepared, outputs, judged.sheet, rules) or judged_once(prepared, judged.sheet, rules)[1]
            )
        if fault:
            faults[name] = Fault(fault.failure, f"right before it was timed, wrong since: {fault.reason}")
    return faults


def disturbed(judged: Judged) -> str:
    """What somebody changed during the timed rounds, which all contenders share; everything is then put back.

    Nobody can say who it was: contenders that were timed together must be timed alone.
    """
    sheet = judged.sheet
    changed = [f"input {name!r}" for name in sheet.modified()]
    changed += [f"memory beside input {name!r}" for name, tensor in sheet.held.items() if fences.broken(tensor)]
    changed += [f"torch's {name}" for name in settings.changed(sheet.settings, sheet.device)]
    changed += tools.replaced()
    clean_up(sheet)
    return ", ".join(changed)


def clean_up(sheet: Sheet) -> None:
    """Put back inputs, fences, global settings and the harness's tools: one must not fail the others."""
    tools.put_back()
    settings.restore(sheet.settings, sheet.device)
    for name in sheet.modified():
        sheet.held[name].data.copy_(sheet.copies[name])
    for tensor in sheet.held.values():
        if fences.broken(tensor):
            fences.mend(tensor)


def sheet_of(spec: Operator, case: Case, made: inputs.CaseInputs, device: str) -> Sheet:
    held = inputs.tensors(made)
    expected = inputs.reference(spec, made, device)
    return Sheet(held, referee.clones(held), expected, spec, case, device, settings.current(device))


def renewed(sheet: Sheet, made: inputs.CaseInputs, fresh: inputs.CaseInputs, sitting: Sitting) -> Sheet:
    assert sitting.renew is not None
    for name, value in made.items():
        if value.role is Role.DATA:
            sitting.renew(value.tensor, fresh[name].tensor)
    return sheet_of(sheet.spec, sheet.case, made, sheet.device)


def _prepared(bench: Bench, contender: Contender, sheet: Sheet, weigh: bool) -> Prepared | Fault:
    try:
        with bench.phase("prepare", contender.name):
            reason = refusal(contender, sheet.case)
        if reason is not None:
            return Fault(None, reason)
        return (prepare_weighed if weigh else prepare)(contender, sheet.held, sheet.device, bench.phase)
    except Exception as error:
        fault = as_fault(error, sheet.device, contender.tree.root)
        clean_up(sheet)
        return fault


class _Book:
    """What the sittings of a case have brought so far."""

    def __init__(self, bench: Bench, rules: Referee) -> None:
        self.faults: dict[str, Fault] = {}
        self.accuracy: dict[str, Accuracy] = {}
        self._grown: dict[str, list[int]] = {}
        self._bench, self._rules = bench, rules

    def passes(self, prepared: Prepared, sitting: Sitting, sheet: Sheet) -> bool:
        """Judge one contender in one sitting."""
        name = prepared.contender.name
        with self._bench.phase("check", name):
            found, fault, grown = judged_and_grown(prepared, sheet, self._rules)
        self._grown.setdefault(name, []).append(grown)
        if found is None:
            self.faults[name] = in_sitting(sitting, fault or Fault("incorrect", "no output to judge"))
            return False
        self.accuracy[name] = found
        return True

    def weighed(self, prepared: Prepared) -> Prepared:
        """With what it came to hold in later calls than its first."""
        return grown_by(prepared, self._grown[prepared.contender.name], self._bench.device)

    def closes(self, prepared: Prepared, sheet: Sheet) -> bool:
        """Judge what only shows over several sittings."""
        name = prepared.contender.name
        complaint = self._rules.growth(self._grown.get(name, ()), sheet.output_bytes)
        if complaint:
            # Python may only not have collected it yet: ask again, with a collection around each call.
            with self._bench.phase("check", name):
                complaint = self._rules.growth([growth(prepared, sheet.device) for _ in range(2)], sheet.output_bytes)
        if complaint:
            self.faults[name] = Fault("incorrect", str(complaint))
        return complaint is None


def judged_and_grown(prepared: Prepared, sheet: Sheet, rules: Referee) -> tuple[Accuracy | None, Fault | None, int]:
    """``judged_once``, and the bytes that are held since which were not before; garbage is collected where any are."""
    before = held_bytes(sheet.device) or 0
    found, fault = judged_once(prepared, sheet, rules)
    after = held_bytes(sheet.device) or 0
    if after - before >= GROWS[sheet.device]:
        gc.collect()
        after = held_bytes(sheet.device) or 0
    return found, fault, after - before


def grown_by(prepared: Prepared, grown: Iterable[int], device: str) -> Prepared:
    """With what it came to hold in the sittings too, where that is more than a heap's own growth."""
    later = sum(each for each in grown if each >= GROWS[device])
    return replace(prepared, kept=replace(prepared.kept, allocated=prepared.kept.allocated + later))


def growth(prepared: Prepared, device: str) -> int:
    """Bytes that one call leaves in use once its output and all garbage are gone."""
    gc.collect()
    before = held_bytes(device)
    prepared.run()
    tools.synchronize(device)
    gc.collect()
    after = held_bytes(device)
    return 0 if before is None or after is None else after - before


def judged_once(prepared: Prepared, sheet: Sheet, rules: Referee) -> tuple[Accuracy | None, Fault | None]:
    """Its errors when it passed, else its fault."""
    try:
        ruling = referee.judge(prepared.run, prepared.contender.opened.to_torch, sheet, rules)
    except Exception as error:
        # raises when the device is lost: there is nothing left to clean up then
        fault = as_fault(error, sheet.device, prepared.contender.tree.root)
        clean_up(sheet)
        return None, fault
    clean_up(sheet)
    return ruling.accuracy, _as_fault(ruling.complaint)


def judged_timed(prepared: Prepared, outputs: Sequence[Any], sheet: Sheet, rules: Referee) -> Fault | None:
    """Judge outputs that were kept from timed calls; there may be none."""
    if not outputs:
        return None
    converted = [prepared.contender.opened.to_torch(output) for output in outputs]
    first, *later = converted
    trial = Trial(sheet, outputs[0], first, early=first, late=False, touched=(), repeats=tuple(later))
    return _as_fault(referee.rule(trial, rules).complaint)


def _as_fault(complaint: Complaint | None) -> Fault | None:
    return Fault("incorrect", str(complaint)) if complaint else None


def in_sitting(sitting: Sitting, fault: Fault) -> Fault:
    """A fault that shows only after the inputs changed says that something of the old ones was kept."""
    if fault.failure != "incorrect" or sitting.renew is None:
        return fault
    return Fault("incorrect", f"right before, wrong with {sitting.name}: {fault.reason}")
