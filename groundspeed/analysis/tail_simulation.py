"""What the p99 rule gets wrong, by simulation: false alarms under every noise of ``simulation``, and slow paths missed.

``python -m groundspeed.analysis.tail_simulation`` prints the tables that docs/gating.md shows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groundspeed import interrupts
from groundspeed.analysis.rule import FRESH_PROCESSES, PROCESSES, ROUNDS
from groundspeed.analysis.simulation import NOISY, SCENARIOS, Scenario, drifts, simulate, simulate_samples
from groundspeed.analysis.stats import FloatArray
from groundspeed.analysis.tail_rule import TAIL_ROUNDS, ProcessSamples, compare_tails

T = 0.20
_CHUNK = 100  # comparisons drawn at once: bounds the memory
SHARES = (0.01, 0.02, 0.03, 0.05, 0.10)
LENGTHS = (1.2, 1.4, 2.0, 4.0)


@dataclass(frozen=True)
class SlowPath:
    """What head does in simulation: ``share`` of its calls take ``length`` times as long, all of them ``slower``."""

    share: float = 0.0
    length: float = 1.0
    slower: float = 0.0


@dataclass(frozen=True)
class TailOutcome:
    """What became of many simulated comparisons."""

    comparisons: int
    regressed: int
    improved: int
    suspects: int

    @property
    def power(self) -> float:
        return self.regressed / self.comparisons


def simulate_tails(
    scenario: Scenario, path: SlowPath, comparisons: int, seed: int, threshold: float = T, floor: float | None = None
) -> TailOutcome:
    """Run both steps of the p99 rule on simulated samples. ``floor`` is the medians' noise floor, if known."""
    parameters = (scenario.process_sd, path.share, path.length, path.slower)
    random = np.random.default_rng([seed, ord(scenario.name), *(round(value * 1e6) for value in parameters)])
    regressed = improved = suspects = 0
    for start in range(0, comparisons, _CHUNK):
        count = min(_CHUNK, comparisons - start)
        first = _drawn(random, scenario, path, count, PROCESSES, ROUNDS)
        suspected = sum(_is_suspect(processes, threshold, floor) for processes in first)
        suspects += suspected
        for fresh in _drawn(random, scenario, path, suspected, FRESH_PROCESSES, TAIL_ROUNDS):
            worse = compare_tails(fresh, threshold).convicts(threshold, floor)
            regressed += worse
            improved += not worse and compare_tails(_swapped(fresh), threshold).convicts(threshold, floor)
    return TailOutcome(comparisons, regressed, improved, suspects)


def _is_suspect(processes: list[ProcessSamples], threshold: float, floor: float | None) -> bool:
    sides = processes, _swapped(processes)
    return any(compare_tails(side, threshold).suspect(threshold, floor) for side in sides)


def _drawn(
    random: np.random.Generator, scenario: Scenario, path: SlowPath, comparisons: int, processes: int, rounds: int
) -> list[list[ProcessSamples]]:
    ends = drifts(random, scenario, (comparisons, processes))
    base = simulate_samples(random, scenario, ends, head=False, rounds=rounds)
    head = simulate_samples(random, scenario, ends, head=True, rounds=rounds)
    head *= (1 + path.slower) * np.where(random.random(head.shape) < path.share, path.length, 1.0)
    return [_paired(*sides) for sides in zip(base, head, strict=True)]


def _paired(base: FloatArray, head: FloatArray) -> list[ProcessSamples]:
    return [ProcessSamples(b, h) for b, h in zip(base, head, strict=True)]


def _swapped(processes: Sequence[ProcessSamples]) -> list[ProcessSamples]:
    return [ProcessSamples(each.head, each.base) for each in processes]


def alarm_table(comparisons: int, seed: int) -> str:
    """Verdicts on identical code, with and without noise floors, and the share found of paths of 5 % of the calls."""
    titles = ("scenario", "false regressions", "false improvements", "suspects", "false, floor known", "5 % take 2×")
    lines = [f"| {' | '.join(titles)} |", "|---|--:|--:|--:|--:|--:|"]
    for scenario in (*SCENARIOS, *NOISY):
        alarms = simulate_tails(scenario, SlowPath(), comparisons, seed)
        floor = simulate(scenario, 0.0, T, comparisons, seed).floor
        settled = simulate_tails(scenario, SlowPath(), comparisons, seed, floor=floor)
        power = simulate_tails(scenario, SlowPath(0.05, 2.0), comparisons // 4, seed).power
        counts = (alarms.regressed, alarms.improved, alarms.suspects, settled.regressed + settled.improved)
        cells = [f"({scenario.name}) {scenario.meaning}", *(f"{count / comparisons:.2%}" for count in counts)]
        lines.append(f"| {' | '.join(cells)} | {power:.1%} |")
    return "\n".join(lines)


def path_table(comparisons: int, seed: int) -> str:
    """Slow paths found in scenario (a), by the share of calls that take them and how much longer these take."""
    lengths = " | ".join(f"{length:g}×" for length in LENGTHS)
    lines = [f"| slow calls | {lengths} |", "|--:|" + "--:|" * len(LENGTHS)]
    for share in SHARES:
        powers = [simulate_tails(SCENARIOS[0], SlowPath(share, length), comparisons, seed).power for length in LENGTHS]
        lines.append(f"| {share:.0%} | " + " | ".join(f"{power:.1%}" for power in powers) + " |")
    return "\n".join(lines)


def main() -> int:
    print(f"T = {T:.0%}\n\n{path_table(1_000, seed=1)}", flush=True)
    print(f"\n{alarm_table(10_000, seed=1)}")
    return 0


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
