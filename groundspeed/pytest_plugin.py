"""The pytest-benchmark bridge: device time in pytest-benchmark's own statistics, so that its saving, comparing and
failing on a regression work on GPU kernels.

``operator_benchmark()``
    A test that takes this fixture exists once for every implementation and case of the selection
    (GROUNDSPEED_OPERATORS, _IMPLEMENTATIONS, _DTYPES, _SHAPES, _TIER; tier small by default). All of an operator's
    tests that pytest selected are measured in one sweep, the engine's, in alternating rounds.
``gpu_benchmark(function, *args, **kwargs)``
    Measures any function in this process: on a GPU the span of its kernels, on a CPU wall time. Returns what one
    call returned.

pytest-benchmark times with a clock that a mark can replace. Ours hands out the samples: it reads 0 when a round begins
and the sample when it ends, so that each round of pytest-benchmark is one round of ours, digit for digit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from groundspeed.errors import UserError

_NANO = 1e-9


class MeasurementFailed(Exception):
    """Tells pytest-benchmark that what it was to time failed."""


class ReplayClock:
    """A clock that reads 0 at the beginning of each round and the round's sample, in seconds, at its end."""

    __name__ = "groundspeed.device_time"

    def __init__(self) -> None:
        self._readings: Iterator[float] = iter(())

    def load(self, nanoseconds: Sequence[float]) -> None:
        self._readings = iter([reading for sample in nanoseconds for reading in (0.0, sample * _NANO)])

    def __call__(self) -> float:
        try:
            return next(self._readings)
        except StopIteration:
            raise RuntimeError(
                "pytest-benchmark asked for more rounds than were measured: a test takes operator_benchmark or "
                "gpu_benchmark, and does not call benchmark beside it"
            ) from None


@pytest.fixture
def replay_clock(request: pytest.FixtureRequest) -> ReplayClock:
    """Puts our clock into the test's ``benchmark`` mark, before the ``benchmark`` fixture reads it."""
    clock = ReplayClock()
    mark = request.node.get_closest_marker("benchmark")
    options = dict(mark.kwargs) if mark else {}
    request.node.add_marker(pytest.mark.benchmark(**{**options, "timer": clock}), append=False)
    return clock


@pytest.fixture
def gpu_benchmark(replay_clock: ReplayClock, benchmark: Any) -> Callable[..., Any]:
    """Call it with a function and its arguments: its device time becomes the test's statistics."""

    def measure(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not benchmark.enabled:
            return benchmark.pedantic(function, args=args, kwargs=kwargs)
        from groundspeed.bridge import time_function

        try:
            timed = time_function(lambda: function(*args, **kwargs), seconds=_budget(benchmark))
        except UserError as error:
            pytest.fail(str(error), pytrace=False)
        benchmark.extra_info.update(timed.facts)
        return _replay(benchmark, replay_clock, timed.samples, timed.result)

    return measure


@pytest.fixture
def operator_benchmark(
    request: pytest.FixtureRequest,
    operator_sweeps: Callable[[str], Any],
    replay_clock: ReplayClock,
    benchmark: Any,
    operator: str,
    implementation: str,
    case: str,
) -> Callable[[], None]:
    """Call it: the test's statistics become the samples of its implementation on its case."""

    def replay() -> None:
        from groundspeed.bridge import Wanted, facts

        if not benchmark.enabled:
            _skip(benchmark, "benchmarks are disabled; correctness alone: groundspeed check")
        wanted = Wanted(operator, implementation, case)
        entry = operator_sweeps(operator)[wanted]
        if entry.status == "skipped":
            _skip(benchmark, entry.reason)
        if entry.status == "failed":
            _fail(benchmark, replay_clock, f"{operator}/{implementation} {case}: {entry.failure}: {entry.reason}")
        benchmark.extra_info.update(facts(wanted, entry))
        benchmark.group = benchmark.group or f"{operator} {case}"
        _replay(benchmark, replay_clock, entry.samples["device_cold"], None)

    return replay


@pytest.fixture(scope="session")
def operator_sweeps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """operator → its measurements, swept when first asked for; what pytest deselected is not measured."""
    from groundspeed.bridge import Wanted, sweep

    root = _root(request.config)
    results = tmp_path_factory.mktemp("groundspeed")
    tier = _selection().tier
    selected: dict[str, list[Wanted]] = {}
    for item in request.session.items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "operator_benchmark" in getattr(item, "fixturenames", ()):
            selected.setdefault(params["operator"], []).append(
                Wanted(params["operator"], params["implementation"], params["case"])
            )
    swept: dict[str, Any] = {}

    def measurements(operator: str) -> Any:
        if operator not in swept:
            try:
                swept[operator] = sweep(root, results, selected[operator], tier)
            except UserError as error:
                swept[operator] = error
        if isinstance(swept[operator], UserError):
            pytest.fail(str(swept[operator]), pytrace=False)
        return swept[operator]

    return measurements


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for every implementation and case that the GROUNDSPEED_* variables let through."""
    if "operator_benchmark" not in metafunc.fixturenames:
        return
    from groundspeed.bridge import inventory

    try:
        wanted = inventory(_root(metafunc.config), _selection())
    except UserError as error:
        raise pytest.UsageError(str(error)) from error
    metafunc.parametrize(
        ("operator", "implementation", "case"),
        [(one.operator, one.implementation, one.case) for one in wanted],
        ids=[one.id for one in wanted],
    )


def _selection() -> Any:
    from groundspeed.selection import Selection

    return Selection.from_environment(tier="small")


def _root(config: pytest.Config) -> Any:
    from groundspeed.project import find_project

    return find_project(config.rootpath).root


def _budget(benchmark: Any) -> float:
    """pytest-benchmark's own limit of seconds for one benchmark (--benchmark-max-time, or the mark's)."""
    return float(benchmark._max_time)


def _skip(benchmark: Any, reason: str) -> None:
    benchmark.skipped = True  # else pytest-benchmark warns that its fixture went unused
    pytest.skip(reason)


def _fail(benchmark: Any, clock: ReplayClock, reason: str) -> None:
    """Fail inside the benchmark, so that it counts as one that was run, and failed."""

    def fail() -> None:
        raise MeasurementFailed

    clock.load([0.0])
    with contextlib.suppress(MeasurementFailed):
        benchmark.pedantic(fail)
    pytest.fail(reason, pytrace=False)


def _replay(benchmark: Any, clock: ReplayClock, samples: Sequence[float], result: Any) -> Any:
    clock.load(samples)
    return benchmark.pedantic(lambda: result, rounds=len(samples), iterations=1, warmup_rounds=0)
