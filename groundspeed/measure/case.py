"""One case of one operator, whole: prepare, judge, count calls, time, judge again, weigh memory, meter energy.

All implementations of the case are prepared on the same tensors and timed in the same rounds, so that every ratio
between them is paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from groundspeed.analysis.stats import median
from groundspeed.measure import calls, compilations, compiling, inputs
from groundspeed.measure.bench import PHASE_LIMITS, Bench, Fault, fault_row
from groundspeed.measure.contender import Contender, Prepared
from groundspeed.measure.energy import NoEnergy, measure_energy
from groundspeed.measure.gpu_state import THERMAL, Reading, summary
from groundspeed.measure.incredible import foreign_kernel, no_time, too_fast
from groundspeed.measure.judging import Judged, disturbed, judge_again, judge_case
from groundspeed.measure.referee.witness import Witnesses, watchable
from groundspeed.measure.sampling import Rounds, sample
from groundspeed.measure.timers.base import Sample, sample_remarks
from groundspeed.measure.weighing import Weight, weigh
from groundspeed.operator import Case, Operator
from groundspeed.records import Accuracy, Clocks, Measurement

_CALL_ROUNDS = 15
_CALL_SECONDS = 0.1  # for each implementation


def measure_case(
    bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Yield a measurement for each contender, in their order. Raises DeviceLost when the device is."""
    with bench.phase("inputs"):
        compilations.reset()
        made = inputs.make_inputs(operator, spec, case, bench.device, bench.seed)
    verdict = judge_case(bench, operator, spec, case, contenders, made, bench.rules, weigh=True)
    faults = dict(verdict.faults)
    ready = list(verdict.ready)
    timed = _time(bench, ready, _watchable(bench, verdict)) if ready else None
    if timed is not None:
        faults |= _after_timing(bench, verdict, timed)
    names = [prepared.contender.name for prepared in ready]
    taken = {
        name: _Taken(_weight(bench, prepared), *_energy(bench, prepared, timed, index))
        for index, (name, prepared) in enumerate(zip(names, ready, strict=True))
        if timed is not None and name not in faults
    }
    for contender in contenders:
        name = contender.name
        if timed is None or name not in taken:
            yield fault_row(name, case, digest, faults[name], contender.digest)
            continue
        index = names.index(name)
        yield _row(bench, spec, case, digest, ready[index], verdict.accuracy[name], timed, index, taken[name])


class Disturbed(Exception):
    """Something happened in the timed rounds that spoils them for all: whose doing it was shows one by one."""


def _watchable(bench: Bench, verdict: Judged) -> bool:
    return watchable(verdict.sheet.output_bytes, len(verdict.ready), bench.device)


def _after_timing(bench: Bench, verdict: Judged, timed: _Timed) -> dict[str, Fault]:
    """Judge what the timed calls did and returned. Raises Disturbed where it is not known which of several did it."""
    with bench.phase("check"):
        changed = disturbed(verdict)
    if changed and len(verdict.ready) > 1:
        raise Disturbed(f"changed during the timed rounds: {changed}")
    if changed:
        name = verdict.ready[0].contender.name
        return {name: Fault("incorrect", f"changed during the timed rounds: {changed}")}
    if len(timed.compiled) > 1:
        raise Disturbed(next(iter(timed.compiled.values())))
    faults = judge_again(bench, verdict, timed.outputs, bench.rules)
    faults |= {name: Fault("error", reason) for name, reason in timed.compiled.items()}
    timed.outputs.clear()  # their memory is the device's again
    return faults


@dataclass(frozen=True)
class _Timed:
    outputs: list[list[Any]]
    rounds: Rounds
    calls: list[list[tuple[float, float]]]
    clocks: Clocks | None
    timer: str
    remarks: tuple[str, ...]
    compiled: Mapping[str, str]  # by name, of whom may have compiled meanwhile

    def host_ns(self, index: int) -> float:
        """The host's median time to issue a call."""
        return median([host for _, host in self.calls[index]])


@dataclass(frozen=True)
class _Taken:
    """What one call takes of the device besides time."""

    weight: Weight
    energy_nj: float | None
    energy_remark: str


def _time(bench: Bench, ready: list[Prepared], watch: bool) -> _Timed:
    bare = [prepared.run for prepared in ready]
    called_runs, timed_runs = Witnesses(bare, watch), Witnesses(bare, watch)
    readings: list[Reading] = []

    def throttled() -> tuple[str, ...]:
        if bench.gpu is None:
            return ()
        readings.append(bench.gpu.read())
        return tuple(set(readings[-1].throttle) & THERMAL)

    contenders = [prepared.contender for prepared in ready]
    before = compiling.tally(contenders)
    with ExitStack() as hush:
        with bench.phase("calls"):
            hush.enter_context(calls.quiet())  # until the last round: its one collection takes a part of a second
            calls.call_samples(bare, 1, bench.device)
            called = calls.call_samples(called_runs, _CALL_ROUNDS, bench.device, _CALL_SECONDS * len(bare))
        host = [median([host for _, host in one]) for one in called]
        with bench.phase("time"):
            beat = lambda: bench.begin("time", PHASE_LIMITS["time"], "")  # noqa: E731
            fitted = bench.timer.fit({prepared.contender.name: prepared.run for prepared in ready})
            rounds = sample(fitted.timer, timed_runs, host, bench.budget, throttled, beat)
    compiled = compiling.since(before, compiling.tally(contenders))
    outputs = [one + other for one, other in zip(timed_runs.kept, called_runs.kept, strict=True)]
    return _Timed(outputs, rounds, called, summary(readings), fitted.timer.name, fitted.remarks, compiled)


def _weight(bench: Bench, prepared: Prepared) -> Weight:
    with bench.phase("memory", prepared.contender.name):
        return weigh(prepared, bench.device)


def _energy(bench: Bench, prepared: Prepared, timed: _Timed, index: int) -> tuple[float | None, str]:
    """Nanojoules of a call and how they were measured, or None and why not."""
    if not bench.energy:
        return None, ""
    meter = bench.gpu.energy_meter() if bench.gpu is not None else None
    if meter is None:
        return None, "energy: NVML has no energy counter of this GPU"
    hot = median([one.hot for one in timed.rounds.samples[index]])
    with bench.phase("energy", prepared.contender.name), calls.quiet():
        try:
            found = measure_energy(prepared.run, meter, hot, timed.host_ns(index))
        except NoEnergy as reason:
            return None, f"energy: {reason}"
    return found.nanojoules, str(found)


def kernel_times(samples: Sequence[Sample], kernels: Sequence[str]) -> list[float]:
    """Median span of each of these kernels over the calls that launched just them; empty where no timer sees them."""
    alike = [one.each for one in samples if one.kernels == kernels and one.each]
    return [median(times) for times in zip(*alike, strict=True)]


def by_quantity(samples: Sequence[Sample], called: Sequence[tuple[float, float]]) -> dict[str, list[float]]:
    """``Measurement.samples`` of timed rounds and of (call, host) times."""
    return {
        "device_cold": [one.cold for one in samples],
        "device_hot": [one.hot for one in samples],
        "call": [call for call, _ in called],
        "host": [host for _, host in called],
    }


def counts(spec: Operator, case: Case) -> dict[str, Any]:
    """What a call of a case is counted to do, by the names of ``Measurement``'s fields."""
    traffic = spec.traffic(case)
    return {
        "flops": spec.flop_count(case),
        "bytes_read": traffic.read,
        "bytes_written": traffic.write,
        "bus_bytes": spec.bus_count(case),
        "items": spec.samples(**case.dims) if spec.samples else 0,
    }


def _row(
    bench: Bench,
    spec: Operator,
    case: Case,
    digest: str,
    prepared: Prepared,
    found: Accuracy,
    timed: _Timed,
    index: int,
    taken: _Taken,
) -> Measurement:
    samples = timed.rounds.samples[index]
    contender = prepared.contender
    kernels = max((one.kernels for one in samples), key=len, default=())
    taken_ns = by_quantity(samples, timed.calls[index])
    cold = sorted(taken_ns["device_cold"])
    stranger = foreign_kernel(kernels, contender.opened.own_kernels())
    fault = (
        Fault("incorrect", stranger)
        if stranger
        else no_time(spec, case, taken_ns)
        or too_fast(spec, case, cold[len(cold) // 2] if cold else 0.0, bench.peak, bench.l2_bytes)
    )
    if fault:
        return fault_row(contender.name, case, digest, fault, contender.digest)
    return Measurement(
        implementation=contender.name,
        dtype=case.dtype,
        shape=case.dims,
        status="ok",
        case_digest=digest,
        implementation_digest=contender.digest,
        unstable=timed.rounds.unstable[index],
        timer=timed.timer,
        samples=taken_ns,
        kernels=list(kernels),
        kernel_ns=kernel_times(samples, kernels),
        prepare_ns=prepared.prepare_ns,
        first_run_ns=prepared.first_run_ns,
        peak_memory_bytes=taken.weight.peak,
        prepared_memory_bytes=taken.weight.prepared,
        energy_nj=taken.energy_nj,
        accuracy=found,
        **counts(spec, case),
        resources=list(contender.opened.resources()),
        tuned=contender.opened.tuned(),
        clocks=timed.clocks,
        notes=_notes(timed, index, taken),
    )


def _notes(timed: _Timed, index: int, taken: _Taken) -> list[str]:
    retaken = f"{timed.rounds.retaken} rounds throttled and taken again" if timed.rounds.retaken else ""
    said = (
        retaken,
        *timed.remarks,
        *sample_remarks(timed.rounds.samples[index]),
        *taken.weight.remarks,
        taken.energy_remark,
    )
    return [one for one in said if one]
