"""The pytest-benchmark bridge: device time in pytest-benchmark's own statistics, so that its saving, comparing and
failing on regressions work on GPU kernels.

``operator_benchmark(operator, implementation, case)``
    Replays the samples of one measurement. All selected tests of an operator are measured in one sweep, the engine's,
    in alternating rounds.
``gpu_benchmark(function, *args, **kwargs)``
    Measures any function in this process: the span of its kernels on the GPU, wall time on a CPU. Returns what one
    call returned.

pytest-benchmark times with a replaceable clock. Ours hands out the samples: it reads 0 when a round begins and the
sample when it ends, so that each round of pytest-benchmark is one round of ours, digit for digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

_NANO = 1e-9
BRIDGED = "groundspeed_operator"


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
                "pytest-benchmark asked for more rounds than were measured: use the fixtures operator_benchmark and "
                "gpu_benchmark, and not benchmark beside them"
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
        from groundspeed.measure.one import time_function

        timed = time_function(lambda: function(*args, **kwargs))
        benchmark.extra_info.update(timed.facts)
        return _replay(benchmark, replay_clock, timed.samples, timed.result)

    return measure


def _replay(benchmark: Any, clock: ReplayClock, samples: Sequence[float], result: Any) -> Any:
    clock.load(samples)
    return benchmark.pedantic(lambda: result, rounds=len(samples), iterations=1, warmup_rounds=0)
