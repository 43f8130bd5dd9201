"""What the pytest-benchmark bridge measures: one operator's selected tests in one sweep, or any function in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundspeed.analysis.stats import median
from groundspeed.errors import UserError
from groundspeed.records import Measurement, read_record
from groundspeed.selection import Selection, chosen_timer
from groundspeed.tree import SpecError, Tree


@dataclass(frozen=True)
class Wanted:
    """One test: which implementation of which operator, on which case (its label)."""

    operator: str
    implementation: str
    case: str

    @property
    def id(self) -> str:
        return f"{self.operator}-{self.implementation}-{self.case.replace(' ', '-')}"


@dataclass(frozen=True)
class Timed:
    """Nanoseconds, one a round; what the function returned; and facts to keep beside the statistics."""

    samples: list[float]
    result: Any
    facts: dict[str, Any]


def inventory(root: Path, selection: Selection) -> list[Wanted]:
    """All that a selection lets through; an operator whose spec is broken is left to ``groundspeed check``."""
    tree = Tree(root / "impls")
    selection.check(tree)
    found = []
    for operator in selection.chosen_operators(tree):
        try:
            cases = selection.cases(tree.spec(operator))
        except SpecError:
            continue
        chosen = [one for one in tree.implementations(operator) if selection.includes(one)]
        found += [Wanted(operator, one.name, case.label) for case in cases for one in chosen]
    return found


def sweep(root: Path, results: Path, wanted: Iterable[Wanted], tier: str) -> Mapping[Wanted, Measurement]:
    """Measure these tests of one operator together, in alternating rounds, in a supervised worker.

    Raises UserError for a spec that cannot be used and a worker that could not start.
    """
    from groundspeed import session

    tests = list(wanted)
    (operator,) = {one.operator for one in tests}
    dtypes, shapes = zip(*(one.case.split(" ", 1) for one in tests), strict=True)
    selection = Selection(
        operators=(operator,),
        implementations=tuple(dict.fromkeys(one.implementation for one in tests)),
        dtypes=tuple(dict.fromkeys(dtypes)),
        tier=tier,
        shapes=tuple(dict.fromkeys(shapes)),
    )
    opened = session.open_run(root, results, selection)
    record = read_record(session.measure_operator(opened, operator))
    return {Wanted(operator, entry.implementation, entry.case_label): entry for entry in record.measurements}


def facts(wanted: Wanted, entry: Measurement) -> dict[str, Any]:
    """What pytest-benchmark keeps as extra_info; times in seconds, as all of its are."""
    kept: dict[str, Any] = {
        "operator": wanted.operator,
        "implementation": wanted.implementation,
        "case": wanted.case,
        "timer": entry.timer,
        "case_digest": entry.case_digest,
        "implementation_digest": entry.implementation_digest,
    }
    for quantity in ("device_hot", "call", "host"):
        if entry.samples.get(quantity):
            kept[f"{quantity}_median"] = median(entry.samples[quantity]) * 1e-9
    if entry.memory_bytes is not None:
        kept["peak_memory_bytes"] = entry.memory_bytes
    if entry.accuracy is not None:
        kept["max_abs_error"] = entry.accuracy.max_abs
    if entry.unstable:
        kept["unstable"] = entry.unstable
    return kept


def time_function(function: Callable[[], Any], seconds: float) -> Timed:
    """Time a function in this process by the engine's own timer: on a GPU the span of its kernels, cold.

    Raises UserError where Triton's interpreter is on, and when the function puts no work on the GPU.
    """
    import torch

    from groundspeed.measure.calls import call_samples, quiet
    from groundspeed.measure.device import make_bench
    from groundspeed.measure.protocol import Job
    from groundspeed.measure.sampling import sample

    device = "cuda" if torch.cuda.is_available() else "cpu"
    job = Job("", "", "", device, implementations=(), cases=(), seconds=seconds, timer=chosen_timer())
    bench = make_bench(job, lambda phase, limit, implementation: None)
    result = function()
    with quiet():
        host = median([issued for _, issued in call_samples([function], 5, device)[0]])
        fitted = bench.timer.fit({"the function": function})
        rounds = sample(fitted.timer, [function], [host], bench.budget)
    kept = rounds.samples[0]
    if fitted.timer.sees_kernels and not any(one.kernels for one in kept):
        raise UserError("gpu_benchmark: the function launched no kernel on the current stream, so there is no time")
    details: dict[str, Any] = {"timer": fitted.timer.name}
    if fitted.remarks:
        details["timer_remarks"] = list(fitted.remarks)
    if rounds.unstable[0]:
        details["unstable"] = rounds.unstable[0]
    if fitted.timer.sees_kernels:
        kernels: tuple[str, ...] = max((one.kernels for one in kept), key=len)
        details["kernels"] = list(kernels)
    return Timed([one.cold for one in kept], result, details)
