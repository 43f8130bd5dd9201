"""First calls with cold caches and with warm ones: two fresh processes, the second with what the first left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from groundspeed.measure.process import start_worker
from groundspeed.measure.protocol import Dying, FirstCallTimed, Job, Phase, decode_event
from groundspeed.measure.supervisor import how_it_ended
from groundspeed.records import FirstCall

MODULE = "groundspeed.measure.first_call"
# Where torch.compile, Triton, our own builds, CuPy and the driver keep what they have compiled.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "GROUNDSPEED_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class FirstCalls:
    """Both; ``problem`` says why one is missing."""

    cold: FirstCall | None = None
    warm: FirstCall | None = None
    problem: str = ""


def cold_and_warm(job: Job, environment: dict[str, str], tell: Tell, check: Callable[[], None]) -> FirstCalls:
    """Measure a job of one implementation and one case. ``tell`` is called with ``cold`` and ``warm`` before each.

    What ``check`` raises, at times, ends it.
    """
    with tempfile.TemporaryDirectory(prefix="groundspeed-first-call-", ignore_cleanup_errors=True) as folder:
        caches = {name: str(Path(folder) / name.lower()) for name in CACHES}
        for path in caches.values():
            Path(path).mkdir()
        tell("cold")
        cold = time_first_call(job, {**environment, **caches}, check)
        if isinstance(cold, str):
            return FirstCalls(problem=f"first call, cold: {cold}")
        tell("warm")
        warm = time_first_call(job, {**environment, **caches}, check)
    if isinstance(warm, str):
        return FirstCalls(cold, problem=f"first call, warm: {warm}")
    return FirstCalls(cold, warm)


def time_first_call(job: Job, environment: dict[str, str], check: Callable[[], None]) -> FirstCall | str:
    """One first call in a process of its own, or why there is none."""
    last = Phase("start", 180.0)
    timed: FirstCallTimed | None = None
    dying = ""

    def limit() -> float:
        check()
        return job.limits.get(last.name, last.limit)

    worker = start_worker(environment, MODULE)
    try:
        for line in worker.lines(limit) if worker.hand_over(job) else ():
            if line is None:
                return f"no sign of life for {limit():.0f} s in {last.name}"
            match decode_event(line):
                case Phase() as phase:
                    last = phase
                case FirstCallTimed() as found:
                    timed = found
                case Dying(reason):
                    dying = reason
        status = worker.wait()
        if timed is not None:
            return FirstCall(timed.load_ns, timed.prepare_ns, timed.run_ns)
        return f"{how_it_ended(status, dying, worker.last_words()).reason} in {last.name}"
    finally:
        worker.kill()
