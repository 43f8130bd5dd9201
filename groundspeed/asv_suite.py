"""asv benchmarks whose numbers come from one warm sweep an operator.

asv starts a process for every parameter combination of every benchmark; with a GPU that is seconds of imports and
contexts for microseconds of work. Here an operator's whole sweep is measured once, in asv's ``setup_cache`` slot, and
every combination of every question replays its entry of the record: see WarmBenchmark. The modules under
``benchmarks/`` say which questions there are; nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv_runner.benchmarks._base import Benchmark

from groundspeed import asv_inventory, asv_replay, asv_sweep, interrupts
from groundspeed.asv_inventory import Entry
from groundspeed.records import Measurement

ROOT = Path(__file__).resolve().parents[1]

# asv ends a setup_cache process that prints nothing for so long (seconds). The sweep's supervisor limits each
# implementation by itself, so this only ends a sweep that has lost its supervisor.
SWEEP_SILENCE = 6 * 3600.0
REPLAY_TIMEOUT = 120.0

_NANO = 1e-9


@dataclass(frozen=True)
class Question:
    """What a benchmark asks of a measurement.

    kind
        asv's ``type``: ``time``, ``memory`` or ``track``.
    unit
        asv's ``unit``: ``seconds``, ``bytes``, or empty for a number without one.
    answer
        From a measurement whose status is ok to what asv keeps: ``samples`` or a single value; None when the
        measurement does not hold it.
    means
        The sentence shown in place of the benchmark's source.
    revision
        Another one, where the way of measuring changed what this answer says and no other: its series ends there.
    """

    kind: str
    unit: str
    answer: Callable[[Measurement], object]
    means: str
    revision: str = ""


def samples(measurement: Measurement, quantity: str) -> dict[str, object] | None:
    """All samples of a quantity in seconds, as asv takes them: it derives median, interval and significance."""
    nanoseconds = measurement.samples.get(quantity)
    if not nanoseconds:
        return None
    return {"samples": [_NANO * value for value in nanoseconds], "number": 1}


def first_call_ns(measurement: Measurement) -> float | None:
    """The first call with empty caches where it was measured, else that of the sweep's own warm process."""
    cold = measurement.first_call_cold
    return cold.total_ns if cold else measurement.first_call_ns


def seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else _NANO * nanoseconds


def ask(module: str, question: Question) -> dict[str, Callable[..., None]]:
    """One benchmark an operator: ``call_time.softmax`` for the question of the module ``call_time``."""
    return {entry.operator: _benchmark(entry, question, entry.operator) for entry in _entries()}


def ask_each(module: str, **questions: Question) -> dict[str, type]:
    """Several an operator: ``device_time.softmax.cold`` and ``device_time.softmax.hot``."""
    found: dict[str, type] = {}
    for entry in _entries():
        methods = {name: _benchmark(entry, question, name) for name, question in questions.items()}
        found[entry.operator] = type(entry.operator, (), {"__module__": module, **methods})
    return found


def warm_type(question_names: Iterable[str]) -> type[Benchmark]:
    """WarmBenchmark for today's operators: asv finds a benchmark's type by the last part of its name alone."""
    names = [*(entry.operator for entry in _entries()), *question_names]
    regex = re.compile("|".join(f"{re.escape(name)}$" for name in names))
    return type("Warm", (WarmBenchmark,), {"name_regex": regex})


class WarmBenchmark(Benchmark):
    """A benchmark that is measured with all others of its operator and then replayed.

    ``do_setup_cache`` runs once an operator, whatever number of questions is asked, because they share a
    ``setup_cache_key``. Combinations are found in the record by the values of their parameters, never by asv's
    index. Nothing raises: a raised error makes ``asv continuous`` end without its table. A failed implementation is
    asv's failure (None) and prints its reason; one that was skipped, left out or is not of the commit is n/a (NaN).
    """

    def __init__(self, name: str, func: Any, attr_sources: list[Any]) -> None:
        super().__init__(name, func, attr_sources)
        entry: Entry = func.entry
        self._operator = entry.operator
        self._question: Question = func.question
        self.type, self.unit = self._question.kind, self._question.unit
        self.setup_cache_key = f"sweep of {entry.operator}"
        self.setup_cache_timeout = SWEEP_SILENCE
        self.timeout = REPLAY_TIMEOUT
        self._reply = asv_replay.Reply(asv_replay.FAILED, "not set up")

    def check(self, root: str) -> bool:
        return True

    def do_setup_cache(self) -> asv_sweep.Swept:
        # asv ends this process (Ctrl-C, its time limit) by SIGTERM; interrupted, the sweep takes its worker along.
        with interrupts.on_sigterm():
            return asv_sweep.sweep(ROOT, self._operator)

    def do_setup(self) -> bool:
        """Look the combination up; True makes it n/a."""
        self._reply = asv_replay.reply(self._current_cache, self._current_params, self._question.answer)
        if self._reply.reason:
            print(self._reply.reason)
        return not self._reply.applicable

    def do_run(self) -> object:
        return self._reply.value

    def do_teardown(self) -> None:
        """There is nothing to tear down: the sweep cleaned up after itself."""

    def do_profile(self, filename: str | None = None) -> None:
        """Leave the profile empty: a replay has nothing to profile."""


def _entries() -> list[Entry]:
    return asv_inventory.current(ROOT).entries


def _benchmark(entry: Entry, question: Question, name: str) -> Callable[..., None]:
    def benchmark(*parameters: str) -> None:
        """Never called: WarmBenchmark replays."""

    benchmark.__name__ = benchmark.__qualname__ = name
    for attribute, value in {
        "entry": entry,
        "question": question,
        "params": entry.parameters,
        "param_names": list(asv_inventory.PARAMETERS),
        "version": entry.version + question.revision,
        "pretty_source": f'"""{question.means}"""',
    }.items():
        setattr(benchmark, attribute, value)
    return benchmark
