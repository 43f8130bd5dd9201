"""Streams beside torch's current one: parted from it before the first piece, joined to it after the last."""

import torch

from .pieces import STREAMS


def destination(x):
    """Where the result of an x in host memory belongs: page-locked memory says that there is a GPU."""
    return torch.device("cuda") if x.is_pinned() else x.device


def make_lanes(x):
    """The streams for an x in host memory; none on a CPU."""
    return [torch.cuda.Stream() for _ in range(STREAMS)] if x.is_pinned() else []


def over_pieces(work, bounds, lanes):
    """Call ``work(first, end)`` for each piece, dealt to the streams in turn. The current stream then waits for them.

    The streams wait for the current one first: memory that was allocated on it may still be in use by what it has
    queued. Without streams the pieces are done one after another.
    """
    if not lanes:
        for first, end in bounds:
            work(first, end)
        return
    current = torch.cuda.current_stream()
    begun = current.record_event()
    for lane in lanes:
        lane.wait_event(begun)
    for number, (first, end) in enumerate(bounds):
        with torch.cuda.stream(lanes[number % len(lanes)]):
            work(first, end)
    for lane in lanes:
        current.wait_stream(lane)
