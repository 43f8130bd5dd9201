"""How fast one GPU copies to another: the ceiling of whatever crosses between them, measured in the same session.

The copy engines move a large block from the current GPU to the next, first alone and then while as much comes back.
A rate is that of one direction. Both GPUs must be visible to this process, and the other rank must be idle.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch

from groundspeed.records import Ceilings

_BYTES = 2 << 30  # some 5 ms a copy: that the ways begin some 20 µs apart does not matter
_REPEATS = 8  # the first warms up, and is seldom the best

Way = tuple[int, int]


def with_peer_rates(ceilings: Ceilings) -> Ceilings:
    """The ceilings with the rates between the current GPU and the next in bytes/s; without where there is no way."""
    here = torch.cuda.current_device()
    there = (here + 1) % torch.cuda.device_count()
    if here == there or not torch.cuda.can_device_access_peer(here, there):
        return ceilings
    one_way, both = peer_rate([(here, there)]), peer_rate([(here, there), (there, here)])
    torch.cuda.set_device(here)
    torch.cuda.empty_cache()
    return msgspec.structs.replace(ceilings, peer=both, peer_one_way=one_way)


def peer_rate(ways: Sequence[Way]) -> float:
    """bytes/s in each of these ways at once: the bytes of one over the longest span of any, in the best of eight."""
    pairs = [
        (torch.zeros(_BYTES, dtype=torch.uint8, device=source), torch.empty(_BYTES, dtype=torch.uint8, device=target))
        for source, target in ways
    ]
    streams = [torch.cuda.Stream(source) for source, _ in ways]
    return _BYTES / min(_seconds(ways, pairs, streams) for _ in range(_REPEATS))


def _seconds(
    ways: Sequence[Way], pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], streams: Sequence[object]
) -> float:
    """One copy each way, begun together behind a spin on each GPU: the spans overlap but for the spins' difference."""
    for number, _ in ways:
        torch.cuda.synchronize(number)
    events = []
    for (source, _), (block, target), stream in zip(ways, pairs, streams, strict=True):
        with torch.cuda.device(source), torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)  # about a millisecond: the host issues the other way's copy meanwhile
            first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record(stream)
            target.copy_(block, non_blocking=True)
            second.record(stream)
            events.append((first, second))
    for number, _ in ways:
        torch.cuda.synchronize(number)
    return max(first.elapsed_time(second) for first, second in events) * 1e-3
