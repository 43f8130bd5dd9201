"""Our own timers on a probe, in the probe's process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from groundspeed.analysis.stats import median, quantile
from groundspeed.calibrate.methods import CannotTime
from groundspeed.calibrate.probes import Probe, Run
from groundspeed.calibrate.schema import Missing, Ratio, Reading
from groundspeed.measure.calls import call_samples, quiet
from groundspeed.measure.sampling import exactly, sample
from groundspeed.measure.timers.base import Sample, Timer

_HOST_CALLS = 5


@dataclass(frozen=True)
class Timers:
    """``main`` is the one that measurements are made with; ``beside`` are the others, by method.

    ``missing`` says why one of them is not there.
    """

    main: Timer
    beside: Mapping[str, Timer]
    missing: tuple[Missing, ...] = ()


def load(device: str, beside: bool) -> Timers:
    """Our timers on a device, all of them or the main one alone; on a GPU the first use of CUPTI takes seconds."""
    from groundspeed.measure.device import make_timer

    main = make_timer(device)
    if device != "cuda" or not beside:
        return Timers(main, {})
    import torch

    from groundspeed.measure.timers.cupti import CuptiTimer
    from groundspeed.measure.timers.events import EventTimer
    from groundspeed.measure.timers.graph import GraphTimer
    from groundspeed.measure.timers.probes import MemsetFlush

    gpu = torch.device("cuda", torch.cuda.current_device())
    others: dict[str, Timer] = {"graph": GraphTimer(gpu, main)}
    missing: list[Missing] = []
    if main.name == "cupti":
        others |= {"events": EventTimer(gpu), "cupti_memset": CuptiTimer(gpu, MemsetFlush(gpu))}
    else:
        why = "; ".join(main.fit({}).remarks[:1])
        missing += [Missing(method, why) for method in ("cupti", "cupti_hot", "cupti_memset")]
    return Timers(main, others, tuple(missing))


Pass = Callable[[], Iterator[Reading | Ratio]]


def passes(
    timers: Timers, probe: Probe, run: Run, device: str, rounds: int, process: int
) -> Iterator[tuple[str, Pass]]:
    """Each of our methods and what reads a probe by it; the first times two sides of the same code in turns."""
    with quiet():
        host = median([issued for _, issued in call_samples([run], _HOST_CALLS, device)[0]])
    yield timers.main.name, partial(_both_sides, timers.main, probe, run, host, rounds, process)
    for method, timer in timers.beside.items():
        yield method, partial(_beside, method, timer, probe, run, host, rounds, process)


def _both_sides(
    timer: Timer, probe: Probe, run: Run, host: float, rounds: int, process: int
) -> Iterator[Reading | Ratio]:
    start = perf_counter()
    with quiet():
        first, second = sample(timer, [run, run], [host, host], exactly(rounds)).samples
    seconds = perf_counter() - start
    for quantity, method, spent in (("cold", timer.name, seconds), ("hot", f"{timer.name}_hot", 0.0)):
        sides = [[_span(one, quantity) for one in side] for side in (first, second)]
        yield reading(method, probe.name, process, [*sides[0], *sides[1]], spent)
        log_ratio = math.log(median(sides[1]) / median(sides[0]))
        yield Ratio(f"device_{quantity}", probe.name, process, log_ratio)


def _beside(
    method: str, timer: Timer, probe: Probe, run: Run, host: float, rounds: int, process: int
) -> Iterator[Reading]:
    start = perf_counter()
    with quiet():
        if method == "graph":
            spans, hot = _graph_spans(timer, probe, run, rounds), []
        else:
            (samples,) = sample(timer, [run], [host], exactly(rounds)).samples
            spans, hot = [one.cold for one in samples], [one.hot for one in samples]
    yield reading(method, probe.name, process, spans, perf_counter() - start)
    if method == "events":
        yield reading("events_hot", probe.name, process, hot, 0.0)


def _graph_spans(timer: Timer, probe: Probe, run: Run, rounds: int) -> list[float]:
    from groundspeed.measure.timers.graph import Replays

    fitted = timer.fit({probe.name: run})
    if not isinstance(fitted.timer, Replays):
        raise CannotTime(fitted.remarks[0])
    return [row[0] for row in fitted.timer.hot([[0]] * rounds)]


def reading(method: str, probe: str, process: int, samples: Sequence[float], seconds: float) -> Reading:
    """A reading from a method's samples in ns. Raises CannotTime where they hold no time at all."""
    middle = median(samples)
    if middle <= 0:
        raise CannotTime(f"half of its {len(samples)} samples are 0 ns")
    spread = (quantile(samples, 0.84) - quantile(samples, 0.16)) / 2 / middle
    return Reading(method, probe, process, middle, len(samples), seconds, spread)


def _span(sample: Sample, quantity: str) -> float:
    return sample.cold if quantity == "cold" else sample.hot
