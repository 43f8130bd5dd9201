"""What differs between the two sides that can explain a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from groundspeed.gate.paired import PairOutcome
from groundspeed.records import CHOICES_BY, Measurement


def likely_cause(outcomes: Sequence[PairOutcome]) -> str:
    """The autotuner's choices where they differ, then the kernels launched, then the compilers' resources; or ""."""
    parts = [
        _differ("the autotuner chose {head} (base: {base})", outcomes, lambda m: m.tuned, _other_choices),
        _differ("kernels a call: {head} (base: {base})", outcomes, lambda m: _known(len(m.kernels), m.kernels)),
        _differ("registers: {head} (base: {base})", outcomes, lambda m: _known(_registers(m), m.resources)),
        _differ("bytes spilled: {head} (base: {base})", outcomes, lambda m: _known(_spills(m), m.resources)),
    ]
    return "; ".join(part for part in parts if part)


def _whole(base: str, head: str) -> tuple[str, str]:
    return base, head


def _differ(
    form: str,
    outcomes: Sequence[PairOutcome],
    describe: Callable[[Measurement], str],
    shorten: Callable[[str, str], tuple[str, str]] = _whole,
) -> str:
    base = _usual([describe(outcome.base) for outcome in outcomes])
    head = _usual([describe(outcome.head) for outcome in outcomes])
    if not (base and head and base != head):
        return ""
    base, head = shorten(base, head)
    return form.format(base=base, head=head)


def _other_choices(base: str, head: str) -> tuple[str, str]:
    """Without the choices that are alike; whole where there are more on one side, so that none has its counterpart."""
    ours, theirs = base.split(CHOICES_BY), head.split(CHOICES_BY)
    if len(ours) != len(theirs):
        return base, head
    other = [(one, another) for one, another in zip(ours, theirs, strict=True) if one != another]
    return CHOICES_BY.join(one for one, _ in other), CHOICES_BY.join(another for _, another in other)


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
