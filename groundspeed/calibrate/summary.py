"""What a calibration comes to: value and scatter of each probe and method, noise floors, whether the bounds hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.stats import median
from groundspeed.calibrate.methods import BY_KEY
from groundspeed.calibrate.schema import Calibration, Probed, Reading
from groundspeed.gate.floors import NoiseLine
from groundspeed.report.units import clock, percent

# The bounds on our own timer, and the value that parts short probes from the others.
SHORT_NS = 3_000.0
CV_BOUND, CV_SHARE, CV_BOUND_SHORT = 0.007, 0.90, 0.015
NCU_NS, NCU_BOUND = 20_000.0, 0.06
PROCESSES, SECONDS = 12, 240.0


@dataclass(frozen=True)
class Figure:
    """One method on one probe.

    value
        ns, the median of the processes' values.
    cv
        Their standard deviation (of n - 1) over their mean; None for a single process.
    spread
        Within a process, the median of ``Reading.spread``; None where the method gives no samples.
    low, high
        Least and largest of the processes' values.
    seconds
        Wall time a reading.
    """

    value: float
    cv: float | None
    spread: float | None
    low: float
    high: float
    processes: int
    seconds: float


def figure(readings: Sequence[Reading]) -> Figure:
    """From the readings of one method and probe, at least one."""
    values = np.array([one.value_ns for one in readings])
    spreads = [one.spread for one in readings if one.spread is not None]
    return Figure(
        value=median(values),
        cv=float(values.std(ddof=1) / values.mean()) if len(values) > 1 else None,
        spread=median(spreads) if spreads else None,
        low=float(values.min()),
        high=float(values.max()),
        processes=len(values),
        seconds=float(np.mean([one.seconds for one in readings])),
    )


def figures(calibration: Calibration) -> dict[tuple[str, str], Figure]:
    """Every (probe, method) that has a reading."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for one in calibration.readings:
        groups.setdefault((one.probe, one.method), []).append(one)
    return {key: figure(readings) for key, readings in groups.items()}


def noise_lines(calibration: Calibration) -> list[NoiseLine]:
    """The A/A ratios in the form that the gate reads its floors from, under an operator ``calibrate``."""
    groups: dict[tuple[str, str], list[float]] = {}
    for one in calibration.ratios:
        groups.setdefault((one.probe, one.metric), []).append(one.log_ratio)
    known = {probe.name: probe for probe in calibration.probes}
    return [_noise_line(known[probe], metric, ratios) for (probe, metric), ratios in groups.items()]


def _noise_line(probe: Probed, metric: str, ratios: list[float]) -> NoiseLine:
    shape = ",".join(f"{name}={extent}" for name, extent in probe.shape.items())
    return NoiseLine("calibrate", f"torch_{probe.operation}", probe.dtype, shape, metric, ratios)


@dataclass(frozen=True)
class Verdict:
    """One bound. ``held`` is None where it cannot be judged; ``exceptions`` name what is beyond it, with its facts."""

    bound: str
    held: bool | None
    found: str
    exceptions: tuple[str, ...] = ()


def verdicts(calibration: Calibration) -> list[Verdict]:
    """The bounds on our own timer, judged on a GPU."""
    if calibration.environment.device != "cuda":
        return [Verdict("bounds on device time", None, "they are a GPU's: this calibration is of a CPU")]
    known = figures(calibration)
    ours = {probe: one for (probe, method), one in known.items() if method == calibration.timer}
    long = {probe: one for probe, one in ours.items() if one.value > SHORT_NS}
    short = {probe: one for probe, one in ours.items() if one.value <= SHORT_NS}
    ncu = {probe: one.value for (probe, method), one in known.items() if method == "ncu"}
    return [_long(long, calibration), _short(short, calibration), _ncu(ours, ncu, calibration), _in_time(calibration)]


def _long(probes: dict[str, Figure], calibration: Calibration) -> Verdict:
    bound = f"between-process CV at most {percent(CV_BOUND)} for {percent(CV_SHARE)} of the probes over 3 µs"
    judged = {probe: one for probe, one in probes.items() if one.cv is not None}
    if not judged:
        return Verdict(bound, None, "no probe over 3 µs ran in two processes")
    beyond = _beyond(judged, CV_BOUND, calibration)
    within = len(judged) - len(beyond)
    held = within >= CV_SHARE * len(judged)
    return Verdict(bound, held, f"{within} of {len(judged)} ({percent(within / len(judged))})", beyond)


def _short(probes: dict[str, Figure], calibration: Calibration) -> Verdict:
    bound = f"between-process CV at most {percent(CV_BOUND_SHORT)} for every probe under 3 µs"
    judged = {probe: one for probe, one in probes.items() if one.cv is not None}
    if not judged:
        return Verdict(bound, None, "no probe under 3 µs ran in two processes")
    beyond = _beyond(judged, CV_BOUND_SHORT, calibration)
    return Verdict(bound, not beyond, f"{len(judged) - len(beyond)} of {len(judged)}", beyond)


def _beyond(probes: dict[str, Figure], bound: float, calibration: Calibration) -> tuple[str, ...]:
    return tuple(
        f"{probe}: {percent(one.cv)}, processes from {one.low / 1e3:.2f} to {one.high / 1e3:.2f} µs"
        + (f", within one {percent(one.spread)}" if one.spread is not None else "")
        + _clocked(probe, calibration)
        for probe, one in probes.items()
        if one.cv is not None and one.cv > bound
    )


def _clocked(probe: str, calibration: Calibration) -> str:
    """The clocks right after a probe, and how its values scatter when each is taken in cycles instead; "" without."""
    seen = {one.process: one for one in calibration.clocked if one.probe == probe and one.sm_mhz}
    own = [one for one in calibration.readings if one.probe == probe and one.method == calibration.timer]
    cycles = np.array([one.value_ns * seen[one.process].sm_mhz for one in own if one.process in seen])
    if len(cycles) < 2:
        return ""
    clocks = [one.sm_mhz for one in seen.values()]
    reasons = ", ".join(dict.fromkeys(reason for one in seen.values() for reason in one.throttle))
    throttled = sum(bool(one.throttle) for one in seen.values())
    why = f" ({reasons} in {throttled} of {len(seen)} processes)" if reasons else ""
    power = median([one.power_w for one in seen.values()])
    said = f"; right after it {min(clocks)} to {max(clocks)} MHz{why}, {power:.0f} W"
    return f"{said}; in cycles {percent(float(cycles.std(ddof=1) / cycles.mean()))}"


def _ncu(ours: dict[str, Figure], ncu: dict[str, float], calibration: Calibration) -> Verdict:
    bound = f"within {percent(NCU_BOUND)} of Nsight Compute for probes of 20 µs and more"
    if not ncu:
        why = next((one.reason for one in calibration.missing if one.method == "ncu"), "it was not run")
        return Verdict(bound, None, f"no figures of Nsight Compute: {why}")
    apart = {probe: one.value / ncu[probe] - 1 for probe, one in ours.items() if probe in ncu and one.value >= NCU_NS}
    if not apart:
        return Verdict(bound, None, "no probe of 20 µs was read by both")
    beyond = tuple(f"{probe}: {_signed(share)}" for probe, share in apart.items() if abs(share) > NCU_BOUND)
    return Verdict(bound, not beyond, f"{_signed(min(apart.values()))} to {_signed(max(apart.values()))}", beyond)


def _in_time(calibration: Calibration) -> Verdict:
    bound = f"{PROCESSES} processes in {clock(SECONDS)}"
    if calibration.processes < PROCESSES:
        return Verdict(bound, None, f"{calibration.processes} ran, in {clock(calibration.seconds)}")
    return Verdict(bound, calibration.seconds <= SECONDS, clock(calibration.seconds))


def flush_effect(calibration: Calibration, least_ns: float = NCU_NS) -> str:
    """What a memset flush adds to ours, and what NVBench reads over ours, where caches matter; empty without both."""
    known = figures(calibration)
    memory_bound = [probe.name for probe in calibration.probes if probe.operation != "matmul"]
    parts = []
    for method, words in (("cupti_memset", "our spans read {} with a memset flush"), ("nvbench", "NVBench reads {}")):
        over = _over(known, memory_bound, method, calibration.timer, least_ns)
        if over:
            parts.append(
                words.format(f"{_signed(median(over) - 1)} ({_signed(min(over) - 1)} to {_signed(max(over) - 1)})")
            )
    if not parts:
        return ""
    return f"Over the memory-bound probes of 20 µs and more, against our read flush: {'; '.join(parts)}."


def _over(
    known: dict[tuple[str, str], Figure], probes: Iterable[str], method: str, timer: str, least_ns: float
) -> list[float]:
    pairs = [(known.get((probe, method)), known.get((probe, timer))) for probe in probes]
    return [theirs.value / own.value for theirs, own in pairs if theirs and own and own.value >= least_ns]


def absent(calibration: Calibration) -> dict[str, str]:
    """Methods without any figure, and why; one reason each, by the method's title."""
    present = {one.method for one in calibration.readings}
    reasons: dict[str, str] = {}
    for one in calibration.missing:
        if one.method in BY_KEY and one.method not in present:
            reasons.setdefault(BY_KEY[one.method].title, one.reason)
    return reasons


def gaps(calibration: Calibration) -> list[str]:
    """What single probes and processes lack, each reason once."""
    present = {one.method for one in calibration.readings}
    lines: dict[str, None] = {}
    for one in calibration.missing:
        if one.method in BY_KEY and one.method not in present:
            continue
        where = " ".join(filter(None, (one.probe, BY_KEY[one.method].title if one.method in BY_KEY else one.method)))
        what = where if one.probe or one.process < 0 else f"{where} process {one.process}".strip()
        lines[f"{what}: {one.reason}"] = None
    return list(lines)


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"
