"""The bench that a case is measured on, and what can go wrong with an implementation on it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import torch

from groundspeed.build import BuildError
from groundspeed.errors import kind_and_line
from groundspeed.measure.datasheet import Peak
from groundspeed.measure.gpu_state import Gpu
from groundspeed.measure.referee import REFEREE, Referee
from groundspeed.measure.sampling import Budget
from groundspeed.measure.timers.base import Timer
from groundspeed.operator import ITEMSIZE, Case, Operator
from groundspeed.records import Failure, Measurement

# Seconds without a sign of life after which a phase hangs. max-autotune may try many kernels before it speaks again,
# and what is compiled or tuned only when it first runs has a first run that takes as long as that takes.
PHASE_LIMITS = {
    "prepare": 300.0,
    "first run": 120.0,
    "check": 120.0,
    "calls": 120.0,
    "time": 300.0,
    "memory": 60.0,
    "inputs": 180.0,
    "energy": 60.0,
}


class DeviceLost(Exception):
    """The device's context is gone: nothing more can run in this process."""


@dataclass(frozen=True)
class Bench:
    """What measuring needs to know besides the case: device, timer, budget, what is asked, and whom to tell."""

    device: str
    timer: Timer
    budget: Budget
    seed: int = 0
    gpu: Gpu | None = None
    peak: Peak | None = None
    l2_bytes: int = 0
    energy: bool = False
    rules: Referee = REFEREE
    begin: Callable[[str, float, str], None] = lambda phase, limit, implementation: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def phase(self, name: str, implementation: str = "") -> Iterator[None]:
        """Announce a phase, and add its wall time to the split."""
        self.begin(name, PHASE_LIMITS[name], implementation)
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


def as_fault(error: Exception, device: str, *roots: Path) -> Fault:
    """What an exception of an implementation means. Raises DeviceLost when the device no longer answers.

    ``roots`` are folders of operators: the innermost line under one of them is where it raised.
    """
    shown = kind_and_line(error)[:400]
    line = raised_at(error, *roots)
    if line:
        shown = f"{shown} ({line})"
    if isinstance(error, BuildError):
        return Fault("build", str(error))
    if _out_of_memory(error):
        torch.cuda.empty_cache()
        return Fault("oom", shown)
    if device == "cuda":
        try:
            torch.cuda.synchronize()
        except Exception as lost:
            raise DeviceLost(shown) from lost
    return Fault("error", shown)


def raised_at(error: BaseException, *roots: Path) -> str:
    """``softmax/torch_eager.py:12``: the innermost line under the roots that an exception went through, or empty."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        found = next((f"{file.relative_to(root)}:{line}" for root in roots if file.is_relative_to(root)), found)
    return found


def _out_of_memory(error: Exception) -> bool:
    """torch's and CuPy's own on a GPU, Python's, and the one torch's CPU allocator has no class for."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return known or "can't allocate memory" in str(error)


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


def memory_shortage(spec: Operator, case: Case, free: int) -> str | None:
    """Why a case cannot be held, or None: inputs twice, outputs and temporaries, the oracle in float64."""
    traffic = spec.traffic(case)
    widened = traffic.total * 8 // ITEMSIZE[case.dtype]
    needed = 5 * traffic.total + 2 * widened
    if needed <= free:
        return None
    return f"needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB is free"
