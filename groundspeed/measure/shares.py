"""What the time of a transformer layer goes to, measured: the process behind ``groundspeed shares``.

Started as ``python -m groundspeed.measure.shares ASK ANSWER``, two files. The layer is ``torch_eager`` of the operator
``transformer_layer``, whose attention, feed-forward network and norms are functions of their own: while operations are
watched these announce themselves (``operations.parted``). Nothing of that is in the implementation's timed path; the
wall time of a call is taken before, of the layer as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import torch

from groundspeed.analysis.shares import Operation
from groundspeed.analysis.stats import median
from groundspeed.errors import UserError
from groundspeed.measure import calls, inputs
from groundspeed.measure.operations import Watch, cpu_rates, parted, watched
from groundspeed.measure.timers.train import TimerError
from groundspeed.operator import Case
from groundspeed.records import Ceilings
from groundspeed.tree import BASELINE, Tree

OPERATOR = "transformer_layer"
PARTS = {"attention": "attention", "feed_forward": "FFN", "layer_norm": "norms"}  # functions of the implementation
_WARM = 3
_CALLS = 30


class Ask(msgspec.Struct, frozen=True):
    """Cases of the operator as (dtype, shape), on a device ("cuda" or "cpu")."""

    tree: str
    device: str
    cases: tuple[tuple[str, tuple[tuple[str, int | str], ...]], ...]
    seed: int = 0


class Taken(msgspec.Struct, frozen=True):
    """One case taken apart. ``call_ns`` is the median wall time of a synchronised call."""

    dtype: str
    shape: str
    call_ns: float
    operations: tuple[Operation, ...]


class Answer(msgspec.Struct, frozen=True):
    """What was measured, or in ``refused`` why nothing was."""

    refused: str = ""
    device_name: str = ""
    ceilings: Ceilings = Ceilings()
    taken: tuple[Taken, ...] = ()


def answer(ask: Ask) -> Answer:
    """Measure all cases. Raises UserError for an implementation whose parts are not what they should be."""
    from groundspeed.measure.environment import describe

    tree = Tree(Path(ask.tree))
    cases = [Case(dtype, shape) for dtype, shape in ask.cases]
    dtypes = tuple(dict.fromkeys(case.dtype for case in cases))
    return Answer(
        device_name=describe(ask.device).device_name,
        ceilings=_ceilings(dtypes, ask.device),
        taken=tuple(_told_of(tree, case, number, len(cases), ask) for number, case in enumerate(cases, 1)),
    )


def _told_of(tree: Tree, case: Case, number: int, count: int, ask: Ask) -> Taken:
    """Take a case apart, and say so first, on standard output: the process that asked shows it."""
    print(f"{number}/{count} {case.label}", flush=True)
    return take_apart(tree, case, ask.device, ask.seed)


def take_apart(tree: Tree, case: Case, device: str, seed: int = 0) -> Taken:
    """Time one case's calls, then watch its operations."""
    module = tree.load(f"{OPERATOR}.{BASELINE}")
    missing = [name for name in PARTS if not callable(getattr(module, name, None))]
    if missing:
        raise UserError(f"{OPERATOR}/{BASELINE} has no function {', '.join(missing)}: shares are told apart by them")
    tensors = inputs.tensors(inputs.make_inputs(OPERATOR, tree.spec(OPERATOR), case, device, seed))
    run = module.prepare(**tensors)
    for _ in range(_WARM):
        run()
    with calls.quiet():
        samples = calls.call_samples([run], _CALLS, device)[0]

        def call(watch: Watch) -> None:
            with parted(module, PARTS, watch):
                run()

        try:
            operations = watched(call, device)
        except TimerError as error:
            raise UserError(f"{OPERATOR} {case.label}: {error}") from error
    return Taken(case.dtype, case.shape_label, median([wall for wall, _ in samples]), tuple(operations))


def _ceilings(dtypes: tuple[str, ...], device: str) -> Ceilings:
    if device == "cuda":
        from groundspeed.measure.ceilings import measure_ceilings
        from groundspeed.measure.device import make_timer

        return measure_ceilings(dtypes, True, make_timer(device))
    rates = {dtype: cpu_rates(getattr(torch, dtype)) for dtype in dtypes}
    copy = max(copied for copied, _ in rates.values())
    return Ceilings(copy=copy, read=copy, write=copy, matmul={dtype: rate for dtype, (_, rate) in rates.items()})


def main() -> None:
    ask = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Ask)
    torch.set_grad_enabled(False)
    try:
        told = answer(ask)
    except UserError as error:
        told = Answer(refused=str(error))
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(told))


if __name__ == "__main__":
    main()
