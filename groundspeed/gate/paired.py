"""What the gate asks of the measuring engine, and what it gets back: both sides of every pair, process by process.

This is the whole of what the two know of each other. ``groundspeed.measure.paired`` measures; tests bring a fake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from groundspeed.operator import Case, Tolerance
from groundspeed.records import Environment, Measurement


class MeasureLost(Exception):
    """No further process can be measured (the device is gone): what was yielded stands, the rest was not measured."""


@dataclass(frozen=True)
class Side:
    """One version of one implementation: a tree's folder (as ``impls/``) and the implementation's name in it."""

    tree: Path
    implementation: str


@dataclass(frozen=True)
class Pair:
    """The two versions to alternate, and the cases to do it on.

    ``base`` and ``head`` may be the same files (A/A): they are loaded twice, from two paths or under two package
    names, and measured as if they differed. ``rounds`` is the number of samples a side in one process.
    ``tolerance`` is the tighter of base's and head's for each dtype, and replaces the spec's own for both sides.
    """

    name: str  # what reports call it: head's name where head has it
    base: Side
    head: Side
    cases: tuple[Case, ...]
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)


@dataclass(frozen=True)
class PairRequest:
    """Measure some pairs of one operator in fresh worker processes.

    spec_tree
        The tree whose spec gives inputs, reference and cases to both sides: head's.
    quantities
        Which of ``Measurement.samples`` are judged: others need not be sampled.
    processes, rounds
        So many fresh worker processes, so many rounds in each. In a round both sides of a pair run once on the same
        buffers; base goes first in even rounds, head in odd ones. Which side is *prepared* first alternates from
        process to process, so that a first call's one-off costs fall on both.
    first_process
        Number of the first of these processes: the second step continues the first one's count.
    seed
        Of the inputs; process p draws from ``seed + p``.
    vouched
        An earlier process has judged these very files in full. In a request without it, the first process does.
    tunings
        A folder in which what autotuners learn is kept, so that equal code is tuned once for both sides and for all
        processes of the requests that name it; without one each side tunes in each process.
    """

    operator: str
    spec_tree: Path
    pairs: tuple[Pair, ...]
    quantities: tuple[str, ...]
    device: str
    processes: int
    rounds: int
    first_process: int = 0
    seed: int = 0
    vouched: bool = False
    tunings: Path | None = None


@dataclass(frozen=True)
class PairOutcome:
    """What one process learnt of one pair on one case.

    Both sides are measurements as ``records`` has them: status, failure and reason of each, samples by quantity with
    value i from round i, peak memory, accuracy, prepare and first run times, what an autotuner chose. Both were run on
    the same inputs, so accuracies can be compared.
    """

    pair: str
    case: Case
    base: Measurement
    head: Measurement


@dataclass(frozen=True)
class PairSamples:
    """Everything one worker process yields.

    ``machine`` names the kind of device, as in results; ``seconds`` splits the process's wall time by phase.
    """

    operator: str
    process: int
    machine: str
    environment: Environment
    outcomes: tuple[PairOutcome, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)


class MeasurePairs(Protocol):
    """Measure a request: one item a process, in order, as soon as the process has ended.

    An implementation that fails is an outcome with its reason, never an exception, and ends that pair only. Raises
    MeasureLost when no further process can run. Closing the iterator early stops the work that is left.
    """

    def __call__(self, request: PairRequest) -> Iterable[PairSamples]: ...
