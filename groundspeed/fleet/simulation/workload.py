"""Pull requests of some days, and the work each makes: drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from groundspeed.fleet.simulation.seen import OPERATORS, Seen

PROCESSES, FRESH = 5, 10  # of the gate's two steps
SUSPECTS = 0.06  # share of operators that go to the second step: true changes and noise
DAY = 86_400.0
# Share of a day's pull requests by hour: a working day in one time zone, with a few at night.
HOURS = (1, 1, 1, 1, 1, 1, 2, 4, 7, 10, 11, 10, 7, 9, 11, 11, 9, 7, 4, 3, 2, 2, 2, 1)


@dataclass(frozen=True)
class Model:
    """One kind of GPU: its share of the fleet, and how many times an H200's seconds the same work takes."""

    name: str
    share: float
    slower: float


MODELS = (
    Model("A", 0.30, 1.0),
    Model("B", 0.25, 1.0),
    Model("C", 0.20, 1.3),
    Model("D", 0.15, 1.6),
    Model("E", 0.10, 2.2),
)
BALANCED = tuple(
    Model(one.name, one.slower / sum(model.slower for model in MODELS), one.slower) for one in MODELS
)  # the same GPUs, as many of each as its work takes


@dataclass(frozen=True)
class Kind:
    """What a pull request touches: so many operators, each with a share of its implementations."""

    name: str
    chance: float
    operators: int  # 0: all
    whole: bool


KINDS = (
    Kind("one implementation", 0.70, 1, False),
    Kind("one operator", 0.18, 1, True),
    Kind("a shared header: four operators", 0.10, 4, True),
    Kind("the harness: everything", 0.02, 0, True),
)


@dataclass(frozen=True)
class PullRequest:
    """When it came, what it is, and the seconds that each of its operators takes on an H200."""

    number: int
    arrival: float
    kind: Kind
    pieces: tuple[float, ...]


def pull_requests(days: int, a_day: int, seed: int) -> list[PullRequest]:
    """Poisson arrivals over so many working days."""
    draw = random.Random(seed)
    found: list[PullRequest] = []
    whole = sum(HOURS)
    for hour in range(24 * days):
        rate = a_day * HOURS[hour % 24] / whole / 3600
        moment = hour * 3600.0
        while (moment := moment + draw.expovariate(rate)) < (hour + 1) * 3600.0:
            found.append(_drawn(len(found), moment, draw))
    return found


def comparison_seconds(seen: Seen, share: float, suspect: bool) -> float:
    """What the gate takes for an operator of which a share of the implementations is compared.

    Each process starts, judges and times both sides; building and tuning is done once a side and step.
    """
    steps = [PROCESSES, FRESH] if suspect else [PROCESSES]
    return sum(number * (seen.start + 2 * share * seen.rest) + 2 * share * seen.once for number in steps)


def _drawn(number: int, moment: float, draw: random.Random) -> PullRequest:
    kind = draw.choices(KINDS, [one.chance for one in KINDS])[0]
    names = sorted(OPERATORS)
    chosen = draw.sample(names, kind.operators) if kind.operators else names
    pieces = [
        comparison_seconds(
            OPERATORS[name], 1.0 if kind.whole else 1 / OPERATORS[name].implementations, draw.random() < SUSPECTS
        )
        for name in chosen
    ]
    return PullRequest(number, moment, kind, tuple(sorted(pieces, reverse=True)))
