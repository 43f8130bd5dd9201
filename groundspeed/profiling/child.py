"""The profiled process: prepares one implementation on one case, warms it up, then runs it while the profiler looks.

Started as ``python -m groundspeed.profiling.child ASK ANSWER``, two files; under ncu or nsys, or by itself for
torch.profiler.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch

from groundspeed.backends import backend
from groundspeed.build import BuildError
from groundspeed.errors import UserError
from groundspeed.guests import tree_with_guests
from groundspeed.measure import inputs
from groundspeed.measure.contender import Contender, Prepared, open_contender, prepare, refusal
from groundspeed.measure.environment import describe
from groundspeed.operator import Case
from groundspeed.profiling.protocol import Answer, Ask

_WARM = 2
_WARM_SECONDS = {"cuda": 0.0, "cpu": 0.3}  # ten calls of a CPU after the second were ten times as long as later ones


def answer(ask: Ask) -> Answer:
    """Run the first case that the implementation answers. Raises whatever its own code raises."""
    tree = tree_with_guests(Path(ask.tree))
    spec = tree.spec(ask.operator)
    implementation = tree.implementation(ask.operator, ask.implementation)
    absent = backend(implementation.backend).absent(ask.device)
    if absent:
        return Answer(refused=absent)
    contender = open_contender(tree, implementation)
    case, reason = _first_answered(contender, ask.case_list())
    if case is None:
        return Answer(refused=reason)
    made = inputs.make_inputs(ask.operator, spec, case, ask.device, ask.seed)
    prepared = prepare(contender, inputs.tensors(made), ask.device)
    _warm_up(prepared, ask.device)
    with _looked_at(ask):
        call_ns = [_timed(prepared, ask.device) for _ in range(ask.calls)]
    return Answer(
        case=(case.dtype, case.shape),
        environment=describe(ask.device, {implementation.backend}),
        call_ns=tuple(call_ns),
        resources=tuple(contender.opened.resources()),
        tuned=contender.opened.tuned(),
    )


def _first_answered(contender: Contender, cases: list[Case]) -> tuple[Case | None, str]:
    reasons = []
    for case in cases:
        reason = refusal(contender, case)
        if reason is None:
            return case, ""
        reasons.append(f"{case.label}: {reason}")
    return None, reasons[0] if reasons else "there is no case"


def _warm_up(prepared: Prepared, device: str) -> None:
    until, calls = time.monotonic() + _WARM_SECONDS[device], 0
    while calls < _WARM or time.monotonic() < until:
        prepared.run()
        calls += 1
    _synchronize(device)


def _timed(prepared: Prepared, device: str) -> float:
    start = time.perf_counter_ns()
    output = prepared.run()
    _synchronize(device)
    done = time.perf_counter_ns()
    del output
    return float(done - start)


@contextlib.contextmanager
def _looked_at(ask: Ask) -> Iterator[None]:
    """The profiler looks on inside."""
    if ask.trace:
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if ask.device == "cuda":
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=kinds) as session:
            yield
        session.export_chrome_trace(ask.trace)
        return
    torch.cuda.profiler.start()
    try:
        yield
    finally:
        _synchronize(ask.device)
        torch.cuda.profiler.stop()


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    ask = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Ask)
    torch.set_grad_enabled(False)
    try:
        told = answer(ask)
    except (UserError, BuildError) as error:
        told = Answer(refused=str(error))
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(told))


if __name__ == "__main__":
    main()
