"""One case of one operator, whole: prepare, judge, count calls, time, weigh memory, judge again.

All implementations of the case are prepared on the same tensors and timed in the same rounds, so that every ratio
between them is paired.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch

from groundspeed.build import BuildError
from groundspeed.measure import calls, inputs, referee
from groundspeed.measure.contender import Contender, Prepared, prepare, refusal
from groundspeed.measure.datasheet import Peak
from groundspeed.measure.gpu_state import THERMAL, Gpu, Reading, summary
from groundspeed.measure.sampling import Budget, Rounds, sample
from groundspeed.measure.timers.base import Timer
from groundspeed.operator import ITEMSIZE, Case, Operator
from groundspeed.records import Accuracy, Clocks, Failure, Measurement

_CALL_ROUNDS = 15
_LIMITS = {"prepare": 300.0, "check": 120.0, "calls": 120.0, "time": 300.0, "memory": 60.0, "inputs": 180.0}


class DeviceLost(Exception):
    """The device's context is gone: nothing more can run in this process."""


@dataclass(frozen=True)
class Bench:
    """What measuring needs to know besides the case: device, timer, budget and whom to tell."""

    device: str
    timer: Timer
    budget: Budget
    seed: int = 0
    gpu: Gpu | None = None
    peak: Peak | None = None
    l2_bytes: int = 0
    begin: Callable[[str, float, str], None] = lambda phase, limit, implementation: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def phase(self, name: str, implementation: str = "") -> Iterator[None]:
        """Announce a phase, and add its wall time to the split."""
        self.begin(name, _LIMITS[name], implementation)
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start


@dataclass(frozen=True)
class Fault:
    """Why a contender has no measurement of a case."""

    failure: Failure | None  # None: skipped
    reason: str


@dataclass(frozen=True)
class Judged:
    """Contenders that passed the referee, and the faults of those that did not."""

    ready: tuple[Prepared, ...]
    accuracy: Mapping[str, Accuracy]
    faults: Mapping[str, Fault]


def measure_case(
    bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Yield a measurement for each contender, in their order. Raises DeviceLost when the device is."""
    torch._dynamo.reset()
    with bench.phase("inputs"):
        made = inputs.make_inputs(operator, spec, case, bench.device, bench.seed)
    verdict = judge_case(bench, operator, spec, case, contenders, made)
    faults = dict(verdict.faults)
    ready = list(verdict.ready)
    timed = _time(bench, ready, faults) if ready else None
    peaks = {prepared.contender.name: _peak_memory(bench, prepared) for prepared in ready}
    rows = dict.fromkeys(prepared.contender.name for prepared in ready)
    for contender in contenders:
        name = contender.name
        if timed is None or name not in rows or name in faults:
            yield fault_row(name, case, digest, faults[name], contender.digest)
            continue
        index = [prepared.contender.name for prepared in ready].index(name)
        yield _row(bench, spec, case, digest, ready[index], verdict.accuracy[name], timed, index, peaks[name])


def check_case(
    bench: Bench, operator: str, spec: Operator, case: Case, contenders: Sequence[Contender], digest: str
) -> Iterator[Measurement]:
    """Judge without timing: yield a row for each contender, with its error or its fault."""
    torch._dynamo.reset()
    made = inputs.make_inputs(operator, spec, case, bench.device, bench.seed)
    verdict = judge_case(bench, operator, spec, case, contenders, made)
    for contender in contenders:
        name = contender.name
        if name in verdict.faults:
            yield fault_row(name, case, digest, verdict.faults[name], contender.digest)
        else:
            yield Measurement(
                implementation=name,
                dtype=case.dtype,
                shape=case.dims,
                status="ok",
                case_digest=digest,
                implementation_digest=contender.digest,
                accuracy=verdict.accuracy[name],
            )


def judge_case(
    bench: Bench,
    operator: str,
    spec: Operator,
    case: Case,
    contenders: Sequence[Contender],
    made: inputs.CaseInputs,
) -> Judged:
    """Prepare and judge every contender on two sets of inputs, the second written over the first in place."""
    faults: dict[str, Fault] = {}
    accuracy: dict[str, Accuracy] = {}
    prepared: list[Prepared] = []
    held = inputs.tensors(made)
    copies = referee.clones(held)
    expected = inputs.reference(spec, made)
    for contender in contenders:
        with bench.phase("prepare", contender.name):
            outcome = _prepared(contender, case, held, bench.device)
        if isinstance(outcome, Fault):
            faults[contender.name] = outcome
            continue
        with bench.phase("check", contender.name):
            _, fault = _judged(outcome, held, copies, expected, spec, case, bench.device)
        if fault:
            faults[contender.name] = fault
        else:
            prepared.append(outcome)
    with bench.phase("inputs"):
        fresh = inputs.make_inputs(operator, spec, case, bench.device, bench.seed + 1)
        expected = inputs.reference(spec, inputs.same_weights(made, fresh))
        inputs.overwrite_data(made, fresh)
        del fresh
        copies = referee.clones(held)
    ready = []
    for outcome in prepared:
        name = outcome.contender.name
        with bench.phase("check", name):
            found, fault = _judged(outcome, held, copies, expected, spec, case, bench.device)
        if fault or found is None:
            faults[name] = _stale(fault)
        else:
            accuracy[name] = found
            ready.append(outcome)
    return Judged(tuple(ready), accuracy, faults)


def _prepared(contender: Contender, case: Case, tensors: Mapping[str, torch.Tensor], device: str) -> Prepared | Fault:
    try:
        reason = refusal(contender, case)
        if reason is not None:
            return Fault(None, reason)
        return prepare(contender, tensors, device)
    except Exception as error:
        return as_fault(error, device)


def _judged(
    prepared: Prepared,
    held: dict[str, torch.Tensor],
    copies: dict[str, torch.Tensor],
    expected: referee.Outputs,
    spec: Operator,
    case: Case,
    device: str,
) -> tuple[Accuracy | None, Fault | None]:
    try:
        found, complaint = referee.judge(prepared.call, held, copies, expected, spec, case, device)
    except Exception as error:
        return None, as_fault(error, device)
    finally:
        restore(held, copies)  # an implementation that wrote into the inputs must not fail the others
    return found, Fault("incorrect", str(complaint)) if complaint else None


def restore(held: Mapping[str, torch.Tensor], copies: Mapping[str, torch.Tensor]) -> None:
    """Put back what an implementation wrote into the inputs."""
    for name, tensor in held.items():
        if not referee.same_bits(tensor, copies[name]):
            tensor.copy_(copies[name])


def _stale(fault: Fault | None) -> Fault:
    """A fault that shows only on the second inputs says that something of the first was kept."""
    if fault is None:
        return Fault("incorrect", "no output to judge on the second inputs")
    if fault.failure == "incorrect":
        return Fault("incorrect", f"right on the first inputs, wrong after they changed in place: {fault.reason}")
    return fault


def as_fault(error: Exception, device: str) -> Fault:
    """What an exception of an implementation means. Raises DeviceLost when the device no longer answers."""
    shown = f"{type(error).__name__}: {error}".strip().splitlines()[0][:400]
    if isinstance(error, BuildError):
        return Fault("build", str(error))
    if isinstance(error, torch.OutOfMemoryError) or type(error).__name__ == "OutOfMemoryError":
        torch.cuda.empty_cache()
        return Fault("oom", shown)
    if device == "cuda":
        try:
            torch.cuda.synchronize()
        except Exception as lost:
            raise DeviceLost(shown) from lost
    return Fault("error", shown)


@dataclass(frozen=True)
class _Timed:
    rounds: Rounds
    calls: list[list[tuple[float, float]]]
    clocks: Clocks | None


def _time(bench: Bench, ready: list[Prepared], faults: dict[str, Fault]) -> _Timed:
    runs = [prepared.run for prepared in ready]
    readings: list[Reading] = []

    def throttled() -> tuple[str, ...]:
        if bench.gpu is None:
            return ()
        readings.append(bench.gpu.read())
        return tuple(set(readings[-1].throttle) & THERMAL)

    compiled = compile_count()
    with calls.quiet():
        with bench.phase("calls"):
            calls.call_samples(runs, 2, bench.device)
            called = calls.call_samples(runs, _CALL_ROUNDS, bench.device)
        host = [sorted(host for _, host in one)[len(one) // 2] for one in called]
        with bench.phase("time"):
            beat = lambda: bench.begin("time", _LIMITS["time"], "")  # noqa: E731
            rounds = sample(bench.timer, runs, host, bench.budget, throttled, beat)
    if compile_count() != compiled:
        for prepared in ready:
            if prepared.contender.implementation.backend == "torch":
                faults[prepared.contender.name] = Fault("error", "torch.compile compiled inside the timed region")
    return _Timed(rounds, called, summary(readings))


def compile_count() -> int:
    """Graphs that torch.compile has compiled in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def _peak_memory(bench: Bench, prepared: Prepared) -> int:
    name = prepared.contender.name
    with bench.phase("memory", name):
        if prepared.contender.implementation.backend == "cupy":
            from groundspeed.backends.cupy_backend import torch_allocator

            return calls.peak_memory(prepared.run, bench.device, torch_allocator())
        return calls.peak_memory(prepared.run, bench.device)


def _row(
    bench: Bench,
    spec: Operator,
    case: Case,
    digest: str,
    prepared: Prepared,
    found: Accuracy,
    timed: _Timed,
    index: int,
    peak_bytes: int,
) -> Measurement:
    samples = timed.rounds.samples[index]
    contender = prepared.contender
    kernels = max((one.kernels for one in samples), key=len, default=())
    fault = _foreign_kernel(contender, kernels) or _too_fast(bench, spec, case, [one.cold for one in samples])
    if fault:
        return fault_row(contender.name, case, digest, fault, contender.digest)
    traffic = spec.traffic(case)
    return Measurement(
        implementation=contender.name,
        dtype=case.dtype,
        shape=case.dims,
        status="ok",
        case_digest=digest,
        implementation_digest=contender.digest,
        unstable=timed.rounds.unstable[index],
        timer=bench.timer.name,
        samples={
            "device_cold": [one.cold for one in samples],
            "device_hot": [one.hot for one in samples],
            "call": [call for call, _ in timed.calls[index]],
            "host": [host for _, host in timed.calls[index]],
        },
        kernels=list(kernels),
        prepare_ns=prepared.prepare_ns,
        first_run_ns=prepared.first_run_ns,
        peak_memory_bytes=peak_bytes,
        accuracy=found,
        flops=spec.flop_count(case),
        bytes_read=traffic.read,
        bytes_written=traffic.write,
        items=spec.samples(**case.dims) if spec.samples else 0,
        resources=list(contender.opened.resources()),
        tuned=contender.opened.tuned(),
        clocks=timed.clocks,
        notes=[f"{timed.rounds.retaken} rounds throttled and taken again"] if timed.rounds.retaken else [],
    )


def fault_row(name: str, case: Case, digest: str, fault: Fault, implementation_digest: str = "") -> Measurement:
    """The row of an implementation that has no measurement of a case."""
    return Measurement(
        implementation=name,
        dtype=case.dtype,
        shape=case.dims,
        status="failed" if fault.failure else "skipped",
        case_digest=digest,
        implementation_digest=implementation_digest,
        failure=fault.failure,
        reason=fault.reason,
    )


def _foreign_kernel(contender: Contender, kernels: Sequence[str]) -> Fault | None:
    """A ``cuda_*`` or ``triton_*`` implementation launches its own kernels; copies and sets by the driver are free."""
    own = contender.opened.own_kernels()
    if own is None:
        return None
    for kernel in kernels:
        if not kernel.startswith(("Memcpy", "Memset")) and not any(name in kernel for name in own):
            return Fault("incorrect", f"own kernel: launches {kernel[:120]}, expected one of {', '.join(sorted(own))}")
    return None


def _too_fast(bench: Bench, spec: Operator, case: Case, cold: Sequence[float]) -> Fault | None:
    if bench.peak is None or not cold:
        return None
    traffic = spec.traffic(case)
    middle = sorted(cold)[len(cold) // 2]
    if middle <= 0:
        return None
    reason = referee.impossible(
        traffic.read,
        traffic.write,
        bench.l2_bytes,
        spec.flop_count(case),
        middle,
        bench.peak.bandwidth,
        bench.peak.flops.get(case.dtype, 0.0),
    )
    return Fault("impossible", reason) if reason else None


def memory_shortage(spec: Operator, case: Case, free: int) -> str | None:
    """Why a case cannot be held, or None. Inputs twice, outputs and temporaries of several implementations, the oracle."""
    traffic = spec.traffic(case)
    widened = traffic.total * 8 // ITEMSIZE[case.dtype]
    needed = 5 * traffic.total + 2 * widened
    if needed <= free:
        return None
    return f"needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB is free"
