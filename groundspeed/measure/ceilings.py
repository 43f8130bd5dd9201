"""What this GPU reaches now: the roofline's lines, measured in the same session as the kernels under them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from groundspeed.measure.timers.base import Timer
from groundspeed.measure.timers.probes import mix, read
from groundspeed.records import Ceilings

_BYTES = 2 << 30
_LINK_BYTES = 256 << 20
_REPEATS = 7
_MATMUL = 8192
_MIXES = ((1, 1), (2, 1), (3, 1), (1, 2))  # parts read and written: sums of two and three, gradients of two
_BLOCKS = (1024, 2048, 4096)  # words a program; which is fastest differs with the mix


def measure_ceilings(dtypes: tuple[str, ...], matmul: bool, timer: Timer, link: bool = False) -> Ceilings:
    """Copy, read and write rates of device memory in bytes/s and, where asked, the matmul rate by dtype in FLOP/s and
    the rate of copies from page-locked host memory in bytes/s.
    """
    rates = {dtype: _matmul_rate(dtype, timer) for dtype in dtypes} if matmul else {}
    memory = _memory_rates(timer)
    ceilings = Ceilings(
        copy=memory["copy"],
        read=memory["read"],
        write=memory["write"],
        link=_link_rate(timer) if link else 0.0,
        matmul=rates,
    )
    torch.cuda.empty_cache()
    return ceilings


def _memory_rates(timer: Timer) -> dict[str, float]:
    source = torch.zeros(_BYTES // 4, dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    sink = torch.zeros(1, dtype=torch.int32, device="cuda")
    return {
        "copy": 2 * _BYTES / _seconds(lambda: target.copy_(source), timer),
        "read": _BYTES / _seconds(lambda: read(source, sink), timer),
        "write": _BYTES / _seconds(lambda: target.fill_(1), timer),
    }


def mix_rates(timer: Timer) -> dict[str, float]:
    """What mixes of reads and writes reach, in bytes/s, by parts read and written as ``2:1``: the best of some kernels.

    They try the model by which an operator's own ceiling is put together from copy, read and write.
    """
    part = _BYTES // 16
    source, target = (torch.zeros(3 * part, dtype=torch.int32, device="cuda") for _ in range(2))
    rates = {}
    for reads, writes in _MIXES:
        given, taken = source[: reads * part], target[: writes * part]
        seconds = min(
            _seconds(lambda g=given, t=taken, r=reads, w=writes, b=block: mix(g, t, r, w, b), timer)  # type: ignore[misc]
            for block in _BLOCKS
        )
        rates[f"{reads}:{writes}"] = (reads + writes) * 4 * part / seconds
    return rates


def _link_rate(timer: Timer) -> float:
    source = torch.zeros(_LINK_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(_LINK_BYTES, dtype=torch.uint8, device="cuda")
    return _LINK_BYTES / _seconds(lambda: target.copy_(source, non_blocking=True), timer)


def _matmul_rate(dtype: str, timer: Timer) -> float:
    # Random values: on zeros the same product draws less power and runs some 13 % faster.
    left, right = (torch.randn(_MATMUL, _MATMUL, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
    return 2 * float(_MATMUL) ** 3 / _seconds(lambda: left @ right, timer)


def _seconds(call: Callable[[], object], timer: Timer) -> float:
    """The shortest span of all kernels of one call: a ceiling is what the device can do, not what it mostly does."""
    call()
    spans = [timer.once(call).hot for _ in range(_REPEATS)]
    return min(span for span in spans if span > 0) * 1e-9  # none is 0 but one whose record was lost
