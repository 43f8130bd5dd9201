"""The simulation's clock: jobs of pull requests on the GPUs of one model, by policy."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from groundspeed.fleet.cut import shares
from groundspeed.fleet.simulation.workload import Model, PullRequest

RUNNER = 60.0  # seconds until a CI job measures: a runner, a checkout, an environment; assumed
STATION = 20.0  # seconds until a station measures: imports, a context, the probe; assumed
BETWEEN_FAILURES = (
    200 * 3600.0
)  # GPU-seconds after which a job is lost with its GPU or its process, on average; assumed

Split = Callable[[Sequence[float]], list[list[float]]]


@dataclass(frozen=True)
class Policy:
    """How a pull request's operators become jobs, each of which has a GPU to itself; and whose turn is next.

    split
        Operators' seconds → jobs, each the seconds of its operators in turn.
    opening
        Seconds of each job before it measures.
    smallest_first
        Whether a pull request with less to do goes before one that came earlier.
    keeps
        Whether what a lost job had finished stays: of a fleet each operator, of a CI job nothing.
    """

    name: str
    split: Split
    opening: float
    smallest_first: bool = False
    keeps: bool = True


def whole(pieces: Sequence[float]) -> list[list[float]]:
    return [list(pieces)]


def sharded(count: int) -> Split:
    """As ``groundspeed run --shard i/count`` cuts."""

    def split(pieces: Sequence[float]) -> list[list[float]]:
        named = {f"{number:03}": seconds for number, seconds in enumerate(pieces)}
        return [[named[name] for name in share] for share in shares(named, count) if share]

    return split


def apart(pieces: Sequence[float]) -> list[list[float]]:
    return [[seconds] for seconds in pieces]


POLICIES = (
    Policy("a pull request a GPU (one CI job)", whole, RUNNER, keeps=False),
    Policy("4 shards (a CI matrix)", sharded(4), RUNNER, keeps=False),
    Policy("an operator a GPU (`--fleet`)", apart, STATION),
    Policy("the same, smallest first", apart, STATION, smallest_first=True),
)


@dataclass(frozen=True)
class Verdict:
    """One pull request on one model. Seconds since it came: until its first job began, and until its last one ended."""

    number: int
    waited: float
    took: float


@dataclass(frozen=True)
class Day:
    """What came of it on one model. GPU-seconds held, and of them in jobs that were lost; most GPUs at a time."""

    verdicts: tuple[Verdict, ...]
    held: float
    lost: float
    peak: int


def simulate(requests: Sequence[PullRequest], model: Model, gpus: int, policy: Policy, seed: int) -> Day:
    """Serve them all. A job that is lost is begun again at the end of the time it had."""
    draw = random.Random(f"{seed} {model.name} {policy.name} {gpus}")
    waiting: list[tuple[float, int, int, float]] = []  # rank, number, order, seconds
    ends: list[tuple[float, int, int, float]] = []  # when, number, order, seconds to do again
    left = {request.number: 0 for request in requests}
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    arrival = {request.number: request.arrival for request in requests}
    ranks: dict[int, float] = {}
    held = lost = 0.0
    busy = peak = order = 0
    coming = list(reversed(requests))
    while coming or waiting or ends:
        now = min(coming[-1].arrival if coming else math.inf, ends[0][0] if ends else math.inf)
        while coming and coming[-1].arrival <= now:
            request = coming.pop()
            ranks[request.number] = sum(request.pieces) if policy.smallest_first else request.arrival
            for job in policy.split(request.pieces):
                order += 1
                left[request.number] += 1
                heapq.heappush(waiting, (ranks[request.number], request.number, order, sum(job) * model.slower))
        while ends and ends[0][0] <= now:
            _, number, key, again = heapq.heappop(ends)
            busy -= 1
            if again:
                heapq.heappush(waiting, (ranks[number], number, key, again))
                continue
            left[number] -= 1
            if not left[number]:
                last[number] = now
        while waiting and busy < gpus:
            _, number, key, seconds = heapq.heappop(waiting)
            first.setdefault(number, now)
            busy += 1
            length, again = policy.opening + seconds, 0.0
            if draw.random() < 1 - math.exp(-length / BETWEEN_FAILURES):
                length, again = length * draw.random(), seconds
                lost += length
            held += length
            heapq.heappush(ends, (now + length, number, key, again))
        peak = max(peak, busy)
    verdicts = tuple(Verdict(n, first[n] - arrival[n], last[n] - arrival[n]) for n in sorted(last))
    return Day(verdicts, held, lost, peak)
