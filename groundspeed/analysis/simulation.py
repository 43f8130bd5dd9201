"""What the gate's rule gets wrong, by simulation: false alarms and missed regressions under eight kinds of noise.

``python -m groundspeed.analysis.simulation`` prints the tables that docs/gating.md shows. A scenario is noise that one
comparison of base and head sees in a process: every kind that is drawn a side (a mode, a process effect) strikes base
and head independently, which is the worst case, since whatever strikes both cancels in their ratio.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groundspeed import interrupts
from groundspeed.analysis.rule import (
    FLOOR_QUANTILE,
    FRESH_PROCESSES,
    PROCESSES,
    ROUNDS,
    ProcessMedians,
    conviction,
    gateable,
    suspicion,
)
from groundspeed.analysis.stats import FloatArray

SAMPLE_CV = 0.005
OUTLIER_SHARE, OUTLIER_SIZE = 0.02, 0.10
CHUNK = 2000  # comparisons simulated at once: bounds the memory, not the result


@dataclass(frozen=True)
class Scenario:
    """One kind of noise, on top of 0.5 % a sample and 2 % of samples 10 % slower.

    process_sd
        of the logarithm of a process effect, a side
    slow_share, slow_size
        share of processes, a side, that are slower by ``slow_size``; a negative size is a fast mode
    drift
        the clock moves linearly within a process by up to this much, either way
    """

    name: str
    meaning: str
    process_sd: float = 0.002
    slow_share: float = 0.0
    slow_size: float = 0.0
    drift: float = 0.0


SCENARIOS = (
    Scenario("a", "process sd 0.2 %"),
    Scenario("b", "30 % of processes 3 % slower", slow_share=0.30, slow_size=0.03),
    Scenario("c", "drift up to ±4 %", drift=0.04),
    Scenario("d", "b and c", slow_share=0.30, slow_size=0.03, drift=0.04),
    Scenario("e", "a rare fast mode: 5 % of processes 5 % faster", slow_share=0.05, slow_size=-0.05),
    Scenario("f", "process sd 0.8 %", process_sd=0.008),
    Scenario("g", "stress: 40 % of processes 12 % slower", slow_share=0.40, slow_size=0.12),
)

# Of a shared or throttled CPU: until its noise floors are known, the rule alone stands between it and a false verdict.
NOISY = tuple(Scenario("h", f"process sd {sd:.0%}", process_sd=sd) for sd in (0.05, 0.10, 0.20, 0.30))


@dataclass(frozen=True)
class Outcome:
    """What became of many simulated comparisons of one scenario at one true change."""

    scenario: Scenario
    change: float
    comparisons: int
    regressed: int
    improved: int
    suspects: int
    floor: float  # 99.8 % quantile of step 1's |log-ratio|
    largest: float  # its largest

    @property
    def power(self) -> float:
        return self.regressed / self.comparisons

    @property
    def mean_processes(self) -> float:
        return PROCESSES + FRESH_PROCESSES * self.suspects / self.comparisons


def simulate(scenario: Scenario, change: float, threshold: float, comparisons: int, seed: int) -> Outcome:
    """Run the whole rule on simulated processes. ``change`` is head's true slowdown (0.03 = 3 %), 0 is A/A."""
    random = np.random.default_rng([seed, ord(scenario.name), round(change * 1e6)])
    regressed = improved = suspects = 0
    shifts = []
    for start in range(0, comparisons, CHUNK):
        count = min(CHUNK, comparisons - start)
        first = simulate_processes(random, scenario, change, count, PROCESSES)
        shifts.append(np.abs(first.shift))
        suspected = int(np.count_nonzero(suspicion(first, threshold)))
        suspects += suspected
        if suspected:
            fresh = simulate_processes(random, scenario, change, suspected, FRESH_PROCESSES)
            convicted = conviction(fresh, threshold)
            regressed += int((convicted > 0).sum())
            improved += int((convicted < 0).sum())
    seen = np.concatenate(shifts)
    floor, largest = float(np.quantile(seen, FLOOR_QUANTILE)), float(seen.max())
    return Outcome(scenario, change, comparisons, regressed, improved, suspects, floor, largest)


def simulate_processes(
    random: np.random.Generator, scenario: Scenario, change: float, comparisons: int, processes: int
) -> ProcessMedians:
    """Process medians ``(comparisons, processes)`` of ROUNDS rounds in ABBA order."""
    ends = drifts(random, scenario, (comparisons, processes))
    base = _side(random, scenario, ends, head=False)
    head = _side(random, scenario, ends, head=True) * (1 + change)
    return ProcessMedians(base, head)


def simulate_samples(
    random: np.random.Generator, scenario: Scenario, ends: FloatArray, head: bool, rounds: int
) -> FloatArray:
    """Samples ``(*ends.shape, rounds)`` of one side; ``ends`` is how far the clock has drifted by the last round."""
    samples, effect = _drawn(random, scenario, ends, head, rounds)
    return samples.astype(np.float64) * effect[..., None]


def drifts(random: np.random.Generator, scenario: Scenario, shape: tuple[int, ...]) -> FloatArray:
    """How far each process's clock drifts until its last round."""
    return random.uniform(-scenario.drift, scenario.drift, shape) if scenario.drift else np.zeros(shape)


def _side(random: np.random.Generator, scenario: Scenario, ends: FloatArray, head: bool) -> FloatArray:
    """Medians of one side, shaped as ``ends``."""
    samples, effect = _drawn(random, scenario, ends, head, ROUNDS)
    return np.median(samples, axis=-1).astype(np.float64) * effect


def _drawn(
    random: np.random.Generator, scenario: Scenario, ends: FloatArray, head: bool, rounds: int
) -> tuple[npt.NDArray[np.float32], FloatArray]:
    """Samples before their process's effect, and the effects, shaped as ``ends``."""
    samples = random.standard_normal((*ends.shape, rounds), dtype=np.float32) * np.float32(SAMPLE_CV) + np.float32(1)
    samples += np.float32(OUTLIER_SIZE) * (random.random(samples.shape, dtype=np.float32) < OUTLIER_SHARE)
    if scenario.drift:
        samples *= 1 + ends[..., None].astype(np.float32) * _progress(head, rounds).astype(np.float32)
    effect = np.exp(scenario.process_sd * random.standard_normal(ends.shape))
    effect *= np.where(random.random(ends.shape) < scenario.slow_share, 1 + scenario.slow_size, 1.0)
    return samples, effect


def _progress(head: bool, count: int) -> FloatArray:
    """When each round of a side ran, as a share of the process's time: base first in even rounds, head in odd ones."""
    rounds = np.arange(count)
    second = (rounds % 2 == 0) == head
    return (2 * rounds + second) / (2 * count - 1)


def power_table(threshold: float, comparisons: int, seed: int) -> str:
    """False alarms and power of each scenario as a Markdown table; changes are 0.5 T, T, 1.4 T and 2 T.

    The noise floor is the 99.8 % quantile of A/A estimates; a scenario whose floor is over 0.7 T is not gateable at T,
    and its row says what would happen if it were gated all the same.
    """
    changes = [0.5 * threshold, threshold, 1.4 * threshold, 2 * threshold]
    head = "| scenario | noise floor | false alarms | " + " | ".join(f"{change:.1%}" for change in changes)
    lines = [f"{head} | processes |", "|" + "---|" * (len(changes) + 4)]
    for scenario in SCENARIOS:
        alarms = simulate(scenario, 0.0, threshold, comparisons, seed)
        powers = " | ".join(f"{simulate(scenario, x, threshold, comparisons, seed).power:.1%}" for x in changes)
        limit = "" if gateable(alarms.floor, threshold) else ", not gateable"
        cells = [
            f"({scenario.name}) {scenario.meaning}",
            f"{math.expm1(alarms.floor):.1%}{limit}",
            f"{alarms.regressed} of {comparisons:,}",
            powers,
            f"{alarms.mean_processes:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def noise_table(threshold: float, comparisons: int, seed: int) -> str:
    """What scenario (h) does to the rule, as a Markdown table: verdicts on identical code, and power at T, 2 T and 4 T.

    As in ``power_table``, series that are not gateable are gated all the same.
    """
    changes = [threshold, 2 * threshold, 4 * threshold]
    head = "| scenario (h) | noise floor | false regressions | false improvements | suspects | "
    lines = [head + " | ".join(f"{change:.0%}" for change in changes) + " |", "|" + "---|" * (len(changes) + 5)]
    for scenario in NOISY:
        alarms = simulate(scenario, 0.0, threshold, comparisons, seed)
        cells = [
            scenario.meaning,
            f"{math.expm1(alarms.floor):.1%}",
            *(f"{count / comparisons:.2%}" for count in (alarms.regressed, alarms.improved, alarms.suspects)),
            *(f"{simulate(scenario, x, threshold, comparisons, seed).power:.1%}" for x in changes),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    for limit in (0.02, 0.03, 0.05):
        print(f"\nT = {limit:.0%}\n\n{power_table(limit, 10_000, seed=1)}", flush=True)
    print(f"\nScenario (h), T = 5%\n\n{noise_table(0.05, 10_000, seed=1)}")
    return 0


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
