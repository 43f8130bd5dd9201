"""Which timer measures on a GPU: the one asked for, or the next best with the reason."""

from __future__ import annotations

import torch

from groundspeed.measure.timers.base import Timer
from groundspeed.measure.timers.cupti import CuptiTimer
from groundspeed.measure.timers.events import EventTimer
from groundspeed.measure.timers.graph import GraphTimer


def gpu_timer(asked: str, device: torch.device) -> Timer:
    """The timer of a name of ``selection.TIMERS``, the default for an empty one; events where CUPTI does not record."""
    if asked == "events":
        return EventTimer(device)
    direct = _cupti_or_events(device)
    return GraphTimer(device, direct) if asked == "graph" else direct


def _cupti_or_events(device: torch.device) -> Timer:
    cupti = CuptiTimer(device)
    fault = cupti.fault()
    return cupti if fault is None else EventTimer(device, f"timed by events because CUPTI cannot be used: {fault}")
