"""The simulation's part of docs/fleet.md: ``python -m groundspeed.fleet.simulation.page [--write]``."""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from groundspeed import interrupts
from groundspeed.fleet.simulation.engine import BETWEEN_FAILURES, POLICIES, RUNNER, STATION, Policy, simulate
from groundspeed.fleet.simulation.seen import OPERATORS, RUNS
from groundspeed.fleet.simulation.workload import (
    BALANCED,
    DAY,
    FRESH,
    KINDS,
    MODELS,
    PROCESSES,
    SUSPECTS,
    Model,
    PullRequest,
    pull_requests,
)
from groundspeed.report.marks import replace_between

BEGIN = "<!-- simulation: begin; written by `python -m groundspeed.fleet.simulation.page --write`, do not edit -->"
END = "<!-- simulation: end -->"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "fleet.md"
DAYS, A_DAY, SEED = 5, 500, 20261130
GPUS = 1000
SIZES = (1000, 500, 250, 150, 100, 80, 60, 50, 40)
NEAR = 1.10  # of the p95 of the largest fleet


@dataclass(frozen=True)
class Outcome:
    """One policy on one size of fleet. Seconds; shares of all pull requests, whose verdict is that of all models."""

    policy: Policy
    gpus: int
    waited: tuple[float, ...]
    took: tuple[float, ...]
    held: float
    lost: float
    peak: int
    kinds: dict[str, tuple[float, ...]]

    @property
    def used(self) -> float:
        """The share of the GPUs' time that they were held for."""
        return self.held / (self.gpus * DAYS * DAY)


def outcome(
    requests: Sequence[PullRequest], gpus: int, policy: Policy, models: Sequence[Model] = MODELS, seed: int = SEED
) -> Outcome:
    """A pull request has its verdict when the slowest of the models has."""
    days = [simulate(requests, model, max(1, round(gpus * model.share)), policy, seed) for model in models]
    waited = [max(day.verdicts[number].waited for day in days) for number in range(len(requests))]
    took = [max(day.verdicts[number].took for day in days) for number in range(len(requests))]
    kinds = {
        kind.name: tuple(sorted(took[one.number] for one in requests if one.kind.name == kind.name)) for kind in KINDS
    }
    return Outcome(
        policy,
        gpus,
        tuple(sorted(waited)),
        tuple(sorted(took)),
        sum(day.held for day in days),
        sum(day.lost for day in days),
        sum(day.peak for day in days),
        kinds,
    )


def page() -> str:
    """Everything between the marks."""
    requests = pull_requests(DAYS, A_DAY, SEED)
    large = [outcome(requests, GPUS, policy) for policy in POLICIES]
    spread, small = POLICIES[2:]
    fleet = [outcome(requests, gpus, spread) for gpus in SIZES]
    smallest = [outcome(requests, gpus, small) for gpus in SIZES]
    balanced = [outcome(requests, gpus, spread, BALANCED) for gpus in SIZES]
    blocks = [
        _wrapped(_given(requests)),
        f"**By policy, {GPUS:,} GPUs: time to verdict, waiting, cost**",
        _by_policy(large),
        "**By what is touched: time to verdict, median and 95 %**",
        _by_kind(large),
        "**By number of GPUs, an operator a GPU: time to verdict**",
        _by_size(fleet, smallest, balanced),
        "**Recommended settings**",
        "\n".join(_wrapped(f"* {line}", "  ") for line in _settings(large, fleet, balanced)),
    ]
    return "\n\n" + "\n\n".join(blocks) + "\n\n"


def _given(requests: Sequence[PullRequest]) -> str:
    kinds = "; ".join(f"{kind.name} {_percent(kind.chance)}" for kind in KINDS)
    models = ", ".join(f"{_percent(model.share)} at {model.slower:g}×" for model in MODELS)
    return (
        f"Seed {SEED}: {len(requests):,} pull requests over {DAYS} working days, {A_DAY} a day by a "
        "Poisson process that "
        f"follows a working day. **Measured** is what {len(OPERATORS)} operators cost on one H200 (runs "
        f"`{RUNS[0]}` and "
        f"`{RUNS[1]}`, core tier); from that a comparison is made up as the gate makes it: {PROCESSES} "
        "processes, both "
        f"sides in each, building and tuning once a side, and {FRESH} processes more for a suspect. "
        "**Assumed** are: what "
        f"pull requests touch ({kinds}); {_percent(SUSPECTS)} of operators suspect; five models of GPU, "
        "each of which must "
        f"pass, with shares of the fleet and times of an H200's ({models}); {RUNNER:.0f} s before a CI job measures, "
        f"{STATION:.0f} s before a station does; a job lost every {BETWEEN_FAILURES / 3600:.0f} "
        "GPU-hours, after which the "
        "CI job, or on a fleet the operator, is begun again."
    )


def _by_policy(outcomes: Iterable[Outcome]) -> str:
    heads = ["policy", "median", "95 %", "99 %", "waited, 95 %"]
    heads += ["GPU-hours a day", "GPU-s a pull request", "most at once", "held"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for one in outcomes:
        cells = [one.policy.name, *(_minutes(_quantile(one.took, q)) for q in (0.5, 0.95, 0.99))]
        cells += [_minutes(_quantile(one.waited, 0.95)), f"{one.held / DAYS / 3600:,.0f}"]
        cells += [f"{one.held / len(one.took):,.0f}", f"{one.peak:,}", _percent(one.used)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_kind(outcomes: Sequence[Outcome]) -> str:
    lines = [f"| touched | {' | '.join(one.policy.name for one in outcomes[:3])} |", "|---|---:|---:|---:|"]
    for kind in KINDS:
        cells = [
            f"{_minutes(_quantile(one.kinds[kind.name], 0.5))}, {_minutes(_quantile(one.kinds[kind.name], 0.95))}"
            for one in outcomes[:3]
        ]
        lines.append(f"| {kind.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_size(fleet: Sequence[Outcome], smallest: Sequence[Outcome], balanced: Sequence[Outcome]) -> str:
    heads = ["GPUs", "median", "95 %", "99 %", "waited, 95 %", "held"]
    heads += ["smallest first: 95 %", "99 %", "GPUs split by work: 95 %", "99 %"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---:|" * len(heads)]
    for one, *others in zip(fleet, smallest, balanced, strict=True):
        cells = [f"{one.gpus:,}", *(_minutes(_quantile(one.took, q)) for q in (0.5, 0.95, 0.99))]
        cells += [_minutes(_quantile(one.waited, 0.95)), _percent(one.used)]
        cells += [_minutes(_quantile(other.took, q)) for other in others for q in (0.95, 0.99)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def enough(fleet: Sequence[Outcome]) -> int:
    """The smallest fleet whose p95 is near that of the largest, as are those of all between."""
    best = _quantile(fleet[0].took, 0.95)
    found = fleet[0].gpus
    for one in fleet[1:]:
        if _quantile(one.took, 0.95) > NEAR * best:
            break
        found = one.gpus
    return found


def _settings(large: Sequence[Outcome], fleet: Sequence[Outcome], balanced: Sequence[Outcome]) -> list[str]:
    job, matrix, spread = large[:3]
    p95 = {one.policy.name: _minutes(_quantile(one.took, 0.95)) for one in large}
    all_of_it = KINDS[-1].name
    size, by_work = enough(fleet), enough(balanced)
    worst = max(spread.took)
    each = [one.held / len(one.took) for one in (spread, job)]
    return [
        "An operator a GPU, by `groundspeed gate --fleet`: 95 % of the verdicts within "
        f"{p95[spread.policy.name]}, against "
        f"{p95[matrix.policy.name]} of a matrix of 4 shards and {p95[job.policy.name]} of one CI job. A change of "
        f"everything has its verdict after {_minutes(_quantile(spread.kinds[all_of_it], 0.5))} (median) in place of "
        f"{_minutes(_quantile(job.kinds[all_of_it], 0.5))}. What touches one operator gains only the time "
        "of a runner.",
        f"{size} GPUs with these shares, or {by_work} where each model has as many as its work takes, are "
        "the fewest of "
        f"the table whose 95 % stay within {_percent(NEAR - 1)} of those of {GPUS:,}. Buy GPUs of the "
        "slowest model last, "
        f"and give it the most. With {GPUS:,} the GPUs are held for {_percent(spread.used)} of the time; "
        "the rest is for "
        "nightly runs and for others.",
        f"No priorities: from {size} GPUs on the order of the queue changes nothing. Below that, smallest "
        "first keeps the "
        "95 % low, and the largest changes pay for it in the 99 %.",
        f"`--budget {5 * -(-int(worst) // 300)}m`: the longest verdict of the {len(spread.took):,} took "
        f"{_minutes(worst)}. "
        "It is one operator on the slowest model: more GPUs do not make it shorter, a smaller tier does.",
        f"The cost is that of the operators: {each[0]:,.0f} GPU-seconds a pull request, against "
        f"{each[1]:,.0f} in one CI "
        f"job; {_percent(spread.lost / spread.held)} of them, against {_percent(job.lost / job.held)}, "
        "went to jobs that "
        "were lost.",
    ]


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 118, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _quantile(ordered: Sequence[float], q: float) -> float:
    """The smallest value that at least a share q does not exceed."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def _minutes(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.1f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}, between the marks")
    arguments = parser.parse_args(words)
    text = page()
    if arguments.write:
        PAGE.write_text(
            replace_between(PAGE.read_text(encoding="utf-8"), BEGIN, END, text, PAGE.name), encoding="utf-8"
        )
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
