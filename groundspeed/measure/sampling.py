"""How many rounds: settle, alternate, stop when the interval is narrow or the budget is spent."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from groundspeed.analysis.stats import median, median_interval
from groundspeed.measure.timers.base import Run, Sample, Timer

_JITTER = 2.5  # ns: readings of one step differ by so much at most, from rounding
_LEVELS = 5  # steps that must be seen before they are taken for the clock's
_PAUSE = 0.2  # seconds for a hot device to cool in
_MOST_PAUSES = 20


@dataclass(frozen=True)
class Budget:
    """When to stop. ``seconds`` of wall time are allowed for each implementation of a case.

    width
        Half-width of the 99 % interval of the median, relative to it, that is narrow enough.
    few_rounds
        What slow runs are content with: rounds are cut to the budget, down to this many. Eight samples are the
        fewest that give a 99 % interval of a median.
    """

    seconds: float = 0.4
    width: float = 0.005
    settle_rounds: int = 3
    min_rounds: int = 15
    max_rounds: int = 240
    chunk: int = 15
    few_rounds: int = 9


@dataclass
class Rounds:
    """Samples of one case: ``samples[i][r]`` is the r-th kept round of run i."""

    samples: list[list[Sample]]
    unstable: list[str] = field(default_factory=list)
    retaken: int = 0


def exactly(rounds: int) -> Budget:
    """Just so many rounds, whatever they show: a comparison needs the same number from every process."""
    return Budget(math.inf, 0.0, settle_rounds=3, min_rounds=rounds, max_rounds=rounds, chunk=rounds, few_rounds=rounds)


def sample(
    timer: Timer,
    runs: Sequence[Run],
    host_ns: Sequence[float],
    budget: Budget,
    throttled: Callable[[], tuple[str, ...]] = lambda: (),
    beat: Callable[[], None] = lambda: None,
) -> Rounds:
    """Time all runs of a case in alternating rounds.

    ``throttled`` is asked after each chunk of rounds: one that the device slowed down for heat is thrown away and
    taken again after a pause, until the budget is spent or it was cold too seldom; then what it gives is kept and said
    to be throttled. ``beat`` is called between chunks.
    """
    started = time.monotonic()
    allowed = budget.seconds * len(runs)
    chunk_rounds = _settle(timer, runs, host_ns, budget, allowed)
    kept: list[list[Sample]] = [[] for _ in runs]
    retaken = taken = pauses = 0
    slowed: set[str] = set()
    while True:
        beat()
        chunk = timer.collect(runs, _orders(len(runs), chunk_rounds, taken), host_ns)
        spent = time.monotonic() - started
        hot = throttled()
        if hot and spent < allowed and pauses < _MOST_PAUSES:
            retaken += len(chunk)
            pauses += 1
            time.sleep(_PAUSE)
            continue
        slowed |= set(hot)
        taken += len(chunk)
        for row in chunk:
            for index, one in enumerate(row):
                kept[index].append(one)
        if taken >= min(budget.min_rounds, chunk_rounds) and (
            taken >= budget.max_rounds or spent >= allowed or _narrow(kept, budget.width)
        ):
            break
        if spent >= 2 * allowed:
            break
    step = tick([one.cold for run in kept for one in run])
    return Rounds(kept, [_unstable(k, step, budget, spent, slowed) for k in kept], retaken)


def _settle(timer: Timer, runs: Sequence[Run], host_ns: Sequence[float], budget: Budget, allowed: float) -> int:
    """Run without keeping, and find from how long that takes how many rounds to time at once."""
    timer.collect(runs, _orders(len(runs), 1, 0), host_ns)  # the first use of a timer costs seconds of its own
    start = time.monotonic()
    timer.collect(runs, _orders(len(runs), 1, 1), host_ns)
    round_seconds = time.monotonic() - start
    more = budget.settle_rounds - 2
    if more > 0 and more * round_seconds < allowed:
        timer.collect(runs, _orders(len(runs), more, 0), host_ns)
    if budget.chunk * round_seconds <= allowed:
        return budget.chunk
    return max(budget.few_rounds, min(budget.chunk, int(allowed / round_seconds)))


def _orders(count: int, rounds: int, start: int) -> list[list[int]]:
    """Forth and back in turn, so that a drift over the rounds weighs on all runs alike."""
    forward = list(range(count))
    return [forward if (start + r) % 2 == 0 else forward[::-1] for r in range(rounds)]


def _width(samples: Sequence[Sample], step: float) -> float:
    """Half-width of the interval of the cold median, relative to it, beyond the one step that no round can narrow."""
    values = [one.cold for one in samples]
    middle = median(values)
    if middle == 0:
        return 0.0
    low, high = median_interval(values)
    if not math.isfinite(high - low):
        return high - low
    return max(0.0, high - low - step) / 2 / middle


def _narrow(kept: Sequence[Sequence[Sample]], width: float) -> bool:
    step = tick([one.cold for run in kept for one in run])
    return all(_width(run, step) <= width for run in kept)


def tick(values: Sequence[float]) -> float:
    """By what readings of a clock step, in ns; 0 where they do not.

    An H200's time stamps step by 32 ns, which is 2 % of a kernel of 1.4 µs: its median's interval cannot be narrower.
    Spans between such stamps are multiples of the step, rounded to whole ns. A kernel with a slow and a fast mode is
    not taken for a clock: it shows few levels, and they are no multiples of their distance.
    """
    levels = sorted(set(values))
    gaps = Counter(round(high - low) for low, high in itertools.pairwise(levels) if high - low > _JITTER)
    if sum(gaps.values()) < _LEVELS:
        return 0.0
    # A step of 32 shows as 31, 32 or 33; the middle one is what most of its neighbours are near.
    step = max(gaps, key=lambda gap: (sum(gaps[gap + off] for off in (-1, 0, 1)), gaps[gap], -gap))
    return next((float(each) for each in (step, step + 1, step - 1) if _multiples(levels, each)), 0.0)


def _multiples(levels: Sequence[float], step: int) -> bool:
    return all(abs(level - step * round(level / step)) <= _JITTER for level in levels)


def _unstable(samples: Sequence[Sample], step: float, budget: Budget, spent: float, slowed: Collection[str]) -> str:
    reasons = [f"rounds kept although throttled: {', '.join(sorted(slowed))}"] if slowed else []
    width = _width(samples, step)
    if width > budget.width > 0:
        wanted = f"wanted ±{100 * budget.width:g} %"
        reasons.append(f"99 % interval ±{100 * width:.1f} % after {len(samples)} rounds in {spent:.1f} s, {wanted}")
    return "; ".join(reasons)
