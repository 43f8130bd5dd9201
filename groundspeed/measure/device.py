"""What the device at hand decides: the timer, the budget's demands, peaks and ceilings."""

from __future__ import annotations

from collections.abc import Callable

import torch

from groundspeed.backends.triton_backend import interpreting
from groundspeed.errors import UserError
from groundspeed.measure.bench import Bench
from groundspeed.measure.datasheet import peak
from groundspeed.measure.environment import gpu_handle
from groundspeed.measure.protocol import Job
from groundspeed.measure.referee import REFEREE, briefly
from groundspeed.measure.sampling import Budget, exactly
from groundspeed.measure.timers.base import Timer
from groundspeed.operator import Operator
from groundspeed.records import Ceilings


def make_bench(job: Job, begin: Callable[[str, float, str], None]) -> Bench:
    """The bench of a job. Raises UserError where a time would be that of Triton's interpreter."""
    if interpreting() and not job.check_only:
        raise UserError("TRITON_INTERPRET is set: an interpreted kernel is never timed; unset it and run again")
    timer = make_timer(job.device, job.timer, _is_idle(job))
    rules = briefly(REFEREE) if job.vouched else REFEREE
    if job.device != "cuda":
        return Bench("cpu", timer, budget(job), seed=job.seed, rules=rules, begin=begin)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return Bench(
        "cuda",
        timer,
        budget(job),
        seed=job.seed,
        gpu=gpu_handle("cuda"),
        peak=peak(properties.name),
        l2_bytes=properties.L2_cache_size,
        rules=rules,
        begin=begin,
    )


def _is_idle(job: Job) -> bool:
    """Whether the timer is never asked."""
    return job.check_only or bool(job.turns)


def budget(job: Job) -> Budget:
    """How long to sample."""
    if job.rounds:
        return exactly(job.rounds)
    if job.device == "cuda":
        return Budget(seconds=job.seconds)
    # A shared CPU does not settle to half a per cent: there the budget ends the rounds, and the row says so.
    return Budget(seconds=job.seconds, width=0.02, settle_rounds=2)


def make_timer(device: str, asked: str = "", idle: bool = False) -> Timer:
    """A device's timer. ``asked`` is one of selection.TIMERS or empty; one that stays ``idle`` is not tried out."""
    if device != "cuda":
        from groundspeed.measure.timers.clock import ClockTimer

        return ClockTimer()
    gpu = torch.device("cuda", torch.cuda.current_device())
    if idle:
        from groundspeed.measure.timers.cupti import CuptiTimer

        return CuptiTimer(gpu)
    from groundspeed.measure.timers.choice import gpu_timer

    return gpu_timer(asked, gpu)


def session_ceilings(job: Job, spec: Operator, timer: Timer) -> Ceilings | None:
    """Measured on a GPU when something is to be timed there, and no other side of a comparison is the measure."""
    if job.device != "cuda" or _is_idle(job) or job.sides:
        return None
    from groundspeed.measure.ceilings import measure_ceilings

    return measure_ceilings(spec.dtypes, spec.bound == "compute", timer, link=spec.bound == "link")
