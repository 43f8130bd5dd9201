"""An implementation ready to be judged and timed on one case."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from groundspeed.backends import backend
from groundspeed.backends.base import Opened, Run
from groundspeed.measure.kept import NOTHING, Kept, keeping
from groundspeed.measure.referee import Outputs, synchronize
from groundspeed.measure.tunings import Tunings
from groundspeed.operator import Case
from groundspeed.tree import Implementation, Tree

Phase = Callable[[str, str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Contender:
    """One implementation of one tree, loaded. The gate has two of each, told apart by their labels.

    ``tunings`` are shared with the other side and with other processes; without them each tunes for itself.
    ``loaded_bytes`` is what its file allocated when it was imported.
    """

    tree: Tree
    implementation: Implementation
    opened: Opened
    label: str = ""
    tunings: Tunings | None = None
    loaded_bytes: int = 0

    @property
    def name(self) -> str:
        """What it goes by among the contenders of a case: its label, or the implementation's own name."""
        return self.label or self.implementation.name

    @property
    def digest(self) -> str:
        return self.tree.implementation_digest(self.implementation)


@dataclass(frozen=True)
class Prepared:
    """A contender after ``prepare`` and one run. Nanoseconds; ``kept`` is what it holds since, where it was weighed."""

    contender: Contender
    run: Run
    prepare_ns: float
    first_run_ns: float
    kept: Kept = NOTHING

    def call(self) -> Outputs:
        """One call, its output as torch tensors."""
        return self.contender.opened.to_torch(self.run())


def open_contender(tree: Tree, implementation: Implementation, label: str = "") -> Contender:
    """Load an implementation. Raises UserError for an unknown back end and whatever its file raises."""
    home = tree.home(implementation)
    opened = backend(implementation.backend).open_implementation(home, implementation)
    return Contender(home, implementation, opened, label)


def prepare(
    contender: Contender, tensors: Mapping[str, Any], device: str, phase: Phase = lambda name, of: nullcontext()
) -> Prepared:
    """Compile, convert weights, tune; then the first run. Both are first-call time, and neither is ever timed again.

    ``phase`` is entered with a phase's name and the contender's: each of the two can hang.
    """
    if contender.tunings is not None:
        contender.opened.adopt_tuning(contender.tunings.read(contender.digest))
    with phase("prepare", contender.name):
        start = time.perf_counter_ns()
        run = contender.opened.prepare(tensors)
        synchronize(device)
        prepare_ns = time.perf_counter_ns() - start
    with phase("first run", contender.name), contender.opened.watch():
        start = time.perf_counter_ns()
        output = run()
        synchronize(device)
        first_run_ns = time.perf_counter_ns() - start
        del output
    if contender.tunings is not None:
        contender.tunings.write(contender.digest, contender.opened.tuning())
    return Prepared(contender, run, float(prepare_ns), float(first_run_ns))


def prepare_weighed(
    contender: Contender, tensors: Mapping[str, Any], device: str, phase: Phase = lambda name, of: nullcontext()
) -> Prepared:
    """The same, with what it holds afterwards."""
    with keeping(device) as found:
        prepared = prepare(contender, tensors, device, phase)
    return replace(prepared, kept=found.kept)


def refusal(contender: Contender, case: Case) -> str | None:
    """Its own reason for not answering a case."""
    reason = contender.opened.unsupported(case)
    return None if reason is None else str(reason)
