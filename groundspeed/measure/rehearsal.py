"""A case rehearsed: every implementation prepared and run once, so that what compiling it leaves behind is there.

Nothing is judged and nothing timed. What compilers keep on disk is found there by whoever comes next; what Triton's
autotuners choose goes where the job keeps tunings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from groundspeed.measure import compilations, inputs
from groundspeed.measure.bench import Bench, Fault, as_fault, fault_row
from groundspeed.measure.contender import Contender, prepare, refusal
from groundspeed.measure.referee import synchronize
from groundspeed.measure.turns import Turns
from groundspeed.operator import Case, Operator
from groundspeed.records import Measurement


def rehearse_case(
    turns: Turns, bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Yield a row for each contender: how long preparing took, 0 where it refuses the case, or its fault.

    Raises DeviceLost when the device is.
    """
    with bench.phase("inputs"), turns.turn():  # to fill gigabytes would disturb whoever times a candidate
        compilations.reset()
        tensors = inputs.tensors(inputs.make_inputs(operator, spec, case, bench.device, bench.seed))
        synchronize(bench.device)
    for contender in contenders:
        outcome = _rehearsed(bench, case, contender, tensors)
        if isinstance(outcome, Fault):
            row = fault_row(contender.name, case, digest, outcome, contender.digest)
            refused = outcome.failure is None
            yield msgspec.structs.replace(row, prepare_ns=0.0) if refused else row
        else:
            prepare_ns, first_run_ns = outcome
            yield Measurement(
                implementation=contender.name,
                dtype=case.dtype,
                shape=case.dims,
                status="ok",
                case_digest=digest,
                implementation_digest=contender.digest,
                prepare_ns=prepare_ns,
                first_run_ns=first_run_ns,
            )


def _rehearsed(
    bench: Bench, case: Case, contender: Contender, tensors: Mapping[str, Any]
) -> tuple[float, float] | Fault:
    try:
        with bench.phase("prepare", contender.name):
            reason = refusal(contender, case)
        if reason is not None:
            return Fault(None, reason)
        done = prepare(contender, tensors, bench.device, bench.phase)
    except Exception as error:
        return as_fault(error, bench.device, contender.tree.root)
    return done.prepare_ns, done.first_run_ns
