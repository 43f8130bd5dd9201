"""Prepare the contenders of a case and put each before the referee, twice: the second time on other data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from groundspeed.measure import inputs, referee
from groundspeed.measure.bench import Bench, Fault, as_fault, fault_row
from groundspeed.measure.contender import Contender, Prepared, prepare, refusal
from groundspeed.operator import Case, Operator
from groundspeed.records import Accuracy, Measurement


@dataclass(frozen=True)
class Judged:
    """Contenders that passed the referee, and the faults of those that did not."""

    ready: tuple[Prepared, ...]
    accuracy: Mapping[str, Accuracy]
    faults: Mapping[str, Fault]


def check_case(
    bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Judge without timing: yield a row for each contender, with its error or its fault."""
    torch._dynamo.reset()
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
) -> Judged:
    """Prepare and judge every contender on two sets of inputs, the second written over the first in place."""
    faults: dict[str, Fault] = {}
    accuracy: dict[str, Accuracy] = {}
    prepared: list[Prepared] = []
    held = inputs.tensors(made)
    copies = referee.clones(held)
    expected = inputs.reference(spec, made)
    for contender in contenders:
        with bench.phase("prepare", contender.name):
            outcome = _prepared(contender, case, held, bench.device)
        if isinstance(outcome, Fault):
            faults[contender.name] = outcome
            continue
        with bench.phase("check", contender.name):
            _, fault = _judged(outcome, held, copies, expected, spec, case, bench.device)
        if fault:
            faults[contender.name] = fault
        else:
            prepared.append(outcome)
    with bench.phase("inputs"):
        fresh = inputs.make_inputs(operator, spec, case, bench.device, bench.seed + 1)
        expected = inputs.reference(spec, inputs.same_weights(made, fresh))
        inputs.overwrite_data(made, fresh)
        del fresh
        copies = referee.clones(held)
    ready = []
    for outcome in prepared:
        name = outcome.contender.name
        with bench.phase("check", name):
            found, fault = _judged(outcome, held, copies, expected, spec, case, bench.device)
        if fault or found is None:
            faults[name] = _stale(fault)
        else:
            accuracy[name] = found
            ready.append(outcome)
    return Judged(tuple(ready), accuracy, faults)


def _prepared(contender: Contender, case: Case, tensors: Mapping[str, torch.Tensor], device: str) -> Prepared | Fault:
    try:
        reason = refusal(contender, case)
        if reason is not None:
            return Fault(None, reason)
        return prepare(contender, tensors, device)
    except Exception as error:
        return as_fault(error, device)


def _judged(
    prepared: Prepared,
    held: dict[str, torch.Tensor],
    copies: dict[str, torch.Tensor],
    expected: referee.Outputs,
    spec: Operator,
    case: Case,
    device: str,
) -> tuple[Accuracy | None, Fault | None]:
    try:
        found, complaint = referee.judge(prepared.call, held, copies, expected, spec, case, device)
    except Exception as error:
        return None, as_fault(error, device)
    finally:
        restore(held, copies)  # an implementation that wrote into the inputs must not fail the others
    return found, Fault("incorrect", str(complaint)) if complaint else None


def restore(held: Mapping[str, torch.Tensor], copies: Mapping[str, torch.Tensor]) -> None:
    """Put back what an implementation wrote into the inputs."""
    for name, tensor in held.items():
        if not referee.same_bits(tensor, copies[name]):
            tensor.copy_(copies[name])


def _stale(fault: Fault | None) -> Fault:
    """A fault that shows only on the second inputs says that something of the first was kept."""
    if fault is None:
        return Fault("incorrect", "no output to judge on the second inputs")
    if fault.failure == "incorrect":
        return Fault("incorrect", f"right on the first inputs, wrong after they changed in place: {fault.reason}")
    return fault
