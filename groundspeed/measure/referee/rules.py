"""The rules of a real run, and how an implementation is put to them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from groundspeed.measure.referee import answer, memory, precautions, settings, structure
from groundspeed.measure.referee.tools import synchronize
from groundspeed.measure.referee.trial import Check, Complaint, Outputs, Run, Sheet, Trial, same_outputs
from groundspeed.operator import Case, Operator
from groundspeed.records import Accuracy

T = TypeVar("T")
_RANDOM = random.Random()  # seeded by the system: not to be foreseen from a case's seed
_REPEAT_SECONDS = 0.02  # later calls are cheap or they are few
_REPEAT_BYTES = 64 << 20  # all of their outputs are held at once
_NUDGE_BYTES = 16 << 20

CHECKS: tuple[Check, ...] = (
    settings.tools_untouched,  # first: with a replaced torch.equal nothing below means anything
    structure.plain,
    structure.count,
    structure.shape,
    structure.dtype,
    structure.device,
    structure.strides,
    memory.inputs_unchanged,
    memory.fences_intact,
    memory.fresh_memory,
    memory.settled,
    memory.kept,
    answer.finite,
    answer.special_values,
    answer.tolerance,
    answer.norm,
    answer.later_calls,
    settings.settings_unchanged,
)


def forward(sequence: Sequence[T]) -> Sequence[T]:
    return sequence


def backward(sequence: Sequence[T]) -> Sequence[T]:
    """Whoever lives off what another implementation left behind comes before it once."""
    return sequence[::-1]


@dataclass(frozen=True)
class Sitting:
    """One pass over all implementations of a case.

    renew
        Gives the data inputs new values in place from a fresh draw, behind the implementations' backs; None for the
        values that they were prepared with.
    order
        In which implementations are called.
    applies
        Whether a case gets this sitting at all.
    """

    name: str
    renew: Callable[[torch.Tensor, torch.Tensor], None] | None = None
    order: Callable[[Sequence[Any]], Sequence[Any]] = forward
    applies: Callable[[Operator, Case], bool] = lambda spec, case: True


def overwrite(tensor: torch.Tensor, fresh: torch.Tensor) -> None:
    """New values throughout. ``.data`` leaves the tensor's version counter alone, so nobody is told."""
    tensor.data.copy_(fresh)


def nudge(tensor: torch.Tensor, fresh: torch.Tensor) -> None:
    """One new value, the one furthest from its old: a fingerprint made of a few elements does not see it."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    apart = torch.nan_to_num((fresh.to(torch.float32) - tensor.to(torch.float32)).abs(), nan=0.0, posinf=0.0)
    index, flat = [], int(apart.argmax())
    for size in reversed(apart.shape):
        flat, place = divmod(flat, size)
        index.append(place)
    at = tuple(reversed(index))
    tensor.data[at] = fresh[at]


def _small(spec: Operator, case: Case) -> bool:
    return spec.traffic(case).total <= _NUDGE_BYTES


def few_or_more() -> int:
    """How often to call again: an implementation cannot know when the last judged call was."""
    return _RANDOM.randint(3, 8)


SITTINGS = (
    Sitting("first inputs"),
    Sitting("inputs overwritten in place", overwrite, backward),
    Sitting("one input element changed in place", nudge, forward, _small),
)


@dataclass(frozen=True)
class Referee:
    """What an implementation has to pass.

    checks
        Asked of every trial, in order; the first complaint is the verdict.
    around
        Around every call: sees to it that fresh memory holds nothing useful.
    stage
        Before a trial's first call: leaves work queued that the call has to wait for.
    peek
        Copies the first output behind the call, as the current stream would read it, before anything is waited for.
    repeats
        How many more calls a trial makes after its first, where their time and their outputs' bytes allow.
    agreed
        Just so many instead, whatever they take; 0 leaves it to ``repeats``. Ranks must all call equally often.
    growth
        Asked once all sittings are over: bytes by which memory in use grew in each trial, and bytes of one output.
    wait
        Waits for all work on the device.
    """

    checks: tuple[Check, ...] = CHECKS
    sittings: tuple[Sitting, ...] = SITTINGS
    around: Callable[[Sheet], AbstractContextManager[None]] = precautions.poisoned_memory
    stage: Callable[[Sheet], None] = precautions.inputs_come_late
    peek: Callable[[torch.Tensor], torch.Tensor] = precautions.peek
    repeats: Callable[[], int] = few_or_more
    agreed: int = 0
    growth: Callable[[Sequence[int], int], Complaint | None] = memory.growing
    wait: Callable[[str], None] = synchronize


REFEREE = Referee()


def briefly(referee: Referee) -> Referee:
    """One sitting instead of all, for a process that measures what an earlier one has judged in full.

    What the other sittings ask (whether an answer is kept from inputs that are gone, whether memory grows from call to
    call) is decided by the code, which is the same file by file, built from the same sources and called with the same
    shapes: a process cannot change it. What can differ from process to process is asked in each: the first sitting is
    held on the process's own inputs, and the outputs of timed calls are judged after the rounds.
    """
    return replace(referee, sittings=referee.sittings[:1])


@dataclass(frozen=True)
class Ruling:
    """The errors of a trial's first output, where there are any to take, and the complaint where there is one."""

    accuracy: Accuracy | None
    complaint: Complaint | None


def judge(run: Run, to_torch: Callable[[Any], Outputs], sheet: Sheet, referee: Referee = REFEREE) -> Ruling:
    """Call an implementation a few times on the inputs as they stand and rule on what was seen.

    Raises whatever the implementation raises.
    """
    return rule(observe(run, to_torch, sheet, referee), referee)


def later_calls(referee: Referee, output_bytes: int) -> int:
    """How many calls a trial makes after its first: all of their outputs are held at once."""
    return max(1, min(referee.repeats(), _REPEAT_BYTES // max(1, output_bytes)))


def rule(trial: Trial, referee: Referee = REFEREE) -> Ruling:
    """Ask the checks, in order, until one complains."""
    for check in referee.checks:
        complaint = check(trial)
        if complaint:
            return Ruling(None, complaint)
    return Ruling(trial.errors.accuracy, None)


def observe(run: Run, to_torch: Callable[[Any], Outputs], sheet: Sheet, referee: Referee) -> Trial:
    """Call and look, judging nothing yet."""
    with referee.around(sheet):
        referee.stage(sheet)
        native = run()
        first = to_torch(native)
    early = tuple(referee.peek(out) if isinstance(out, torch.Tensor) else out for out in first)
    referee.wait(sheet.device)
    late, touched = not same_outputs(first, early), sheet.modified()
    repeats = []
    deadline = math.inf if referee.agreed else time.perf_counter() + _REPEAT_SECONDS
    for _ in range(referee.agreed or later_calls(referee, sheet.output_bytes)):
        with referee.around(sheet):
            repeats.append(to_torch(run()))
        referee.wait(sheet.device)
        if time.perf_counter() > deadline:
            break
    return Trial(sheet, native, first, early, late, touched, tuple(repeats))
