"""What differs between the two sides that can explain a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from groundspeed.gate.paired import PairOutcome
from groundspeed.records import Measurement


def likely_cause(outcomes: Sequence[PairOutcome]) -> str:
    """The autotuner's choices where they differ, then the kernels launched, then the compilers' resources; or ""."""
    parts = [
        _differ("the autotuner chose {head} (base: {base})", outcomes, lambda m: m.tuned),
        _differ("kernels a call: {head} (base: {base})", outcomes, lambda m: _known(len(m.kernels), m.kernels)),
        _differ("registers: {head} (base: {base})", outcomes, lambda m: _known(_registers(m), m.resources)),
        _differ("bytes spilled: {head} (base: {base})", outcomes, lambda m: _known(_spills(m), m.resources)),
    ]
    return "; ".join(part for part in parts if part)


def _differ(form: str, outcomes: Sequence[PairOutcome], describe: Callable[[Measurement], str]) -> str:
    base = _usual([describe(outcome.base) for outcome in outcomes])
    head = _usual([describe(outcome.head) for outcome in outcomes])
    return form.format(base=base, head=head) if base and head and base != head else ""


def _usual(descriptions: list[str]) -> str:
    """What most processes say."""
    return Counter(descriptions).most_common(1)[0][0] if descriptions else ""


def _known(number: int, evidence: Sequence[object]) -> str:
    """The number as text, or "" where nothing was recorded: unknown is no difference."""
    return str(number) if evidence else ""


def _registers(measurement: Measurement) -> int:
    return max((kernel.registers for kernel in measurement.resources), default=0)


def _spills(measurement: Measurement) -> int:
    return sum(kernel.spill_bytes for kernel in measurement.resources)
