"""Which operations a call issues, one by one: the part they are of, their bytes and FLOPs, and how long they take.

A dispatch mode sees every operation of torch that a function calls, after what is composed has been taken apart. On a
GPU a mark kernel (timers.probes) follows each, and CUPTI's record of the stream is cut at the marks: what lies between
two marks are one operation's kernels, whatever the host spent in between. On a CPU the host's clock around each
operation is its time. Views move nothing and are left out.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter_ns
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from groundspeed.analysis.shares import OTHER, Operation
from groundspeed.measure.timers.train import MARK, Span, TimerError

_REPEATS = 7
_ATTEMPTS = 3  # CUPTI drops a record now and then
_COPY_BYTES = 64 << 20
_SIDE = 512  # of the square matrices that a CPU's rate is taken with


class Watch(TorchDispatchMode):
    """Notes each operation with the host's nanoseconds around it. ``part`` is what the following ones are of."""

    def __init__(self, after: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.part = OTHER
        self.seen: list[Operation] = []
        self._after = after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        start = perf_counter_ns()
        out = func(*args, **named)
        spent = perf_counter_ns() - start
        if not func.is_view:
            self._after()
            count = flop_registry.get(func._overloadpacket)
            self.seen.append(
                Operation(
                    part=self.part,
                    name=str(func._overloadpacket).removeprefix("aten."),
                    ns=float(spent),
                    flops=int(count(*args, **named, out_val=out)) if count else 0,
                    bytes_read=_bytes((args, named)),
                    bytes_written=_bytes(out),
                )
            )
        return out


@contextlib.contextmanager
def parted(module: ModuleType, parts: Mapping[str, str], watch: Watch) -> Iterator[None]:
    """Let functions of a module announce themselves: ``parts`` maps their names to the parts that they are.

    A function that is called inside another's belongs to the inner part. The module is as before afterwards.
    """
    before = {name: getattr(module, name) for name in parts}

    def announced(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            outer, watch.part = watch.part, part
            try:
                return function(*args, **kwargs)
            finally:
                watch.part = outer

        return call

    for name, part in parts.items():
        setattr(module, name, announced(before[name], part))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(module, name, function)


def watched(call: Callable[[Watch], object], device: str) -> list[Operation]:
    """The operations of one call, each with the median of its times over several calls.

    ``call`` is given the watch under which it runs. Raises TimerError when records stay incomplete, and when calls
    differ in their operations.
    """
    repeats = _on_gpu(call) if device == "cuda" else [_seen(call, Watch()) for _ in range(_REPEATS)]
    if len({tuple((one.part, one.name) for one in seen) for seen in repeats}) != 1:
        raise TimerError("one call issued other operations than the next")
    return [replace(same[0], ns=median(one.ns for one in same)) for same in zip(*repeats, strict=True)]


def _seen(call: Callable[[Watch], object], watch: Watch) -> list[Operation]:
    with watch:
        call(watch)
    return watch.seen


def _on_gpu(call: Callable[[Watch], object]) -> list[list[Operation]]:
    from groundspeed.measure.timers.cupti import record
    from groundspeed.measure.timers.probes import Flush

    flush = Flush(torch.device("cuda", torch.cuda.current_device()))
    flush.mark()  # compiled before anything is recorded
    repeats: list[list[Operation]] = []
    misses: list[TimerError] = []
    while len(repeats) < _REPEATS:
        watch = Watch(flush.mark)

        def marked(watch: Watch = watch) -> None:
            flush.mark()  # before it lies what is no part of the call
            _seen(call, watch)

        spans = record(marked)
        try:
            repeats.append(timed(watch.seen, spans))
        except TimerError as miss:
            misses.append(miss)
            if len(misses) == _ATTEMPTS:
                raise
    return repeats


def timed(operations: Sequence[Operation], spans: Sequence[Span]) -> list[Operation]:
    """Operations with the time of their kernels, from a record with a mark before the first and behind each.

    Raises TimerError where marks are missing, or something ran behind the last.
    """
    sums: list[float] = []
    for span in spans:
        if span.name.startswith(MARK):
            sums.append(0.0)
        elif sums:
            sums[-1] += span.end - span.start
    if len(sums) != len(operations) + 1 or sums[-1]:
        raise TimerError(f"{len(operations) + 1} marks launched, {len(sums)} on the record")
    return [replace(one, ns=ns) for one, ns in zip(operations, sums, strict=False)]


def cpu_rates(dtype: torch.dtype) -> tuple[float, float]:
    """Bytes/s of a copy and FLOP/s of a matrix product on this CPU: enough to tell kinds of operations apart."""
    source = torch.zeros(_COPY_BYTES // 4, dtype=torch.int32)
    target = torch.empty_like(source)
    factor = torch.randn(_SIDE, _SIDE).to(dtype)
    copied = 2 * _COPY_BYTES / _fastest(lambda: target.copy_(source))
    return copied, 2 * float(_SIDE) ** 3 / _fastest(lambda: factor @ factor)


def _fastest(call: Callable[[], object]) -> float:
    call()
    best = math.inf
    for _ in range(_REPEATS):
        start = perf_counter_ns()
        call()
        best = min(best, (perf_counter_ns() - start) * 1e-9)
    return best


def _bytes(values: Any) -> int:
    """Of all tensors in nested tuples, lists and dicts; of an expanded one those that are there."""
    if isinstance(values, torch.Tensor):
        present = [size for size, stride in zip(values.shape, values.stride(), strict=True) if stride or size == 0]
        return math.prod(present) * values.element_size()
    if isinstance(values, Mapping):
        return sum(map(_bytes, values.values()))
    if isinstance(values, tuple | list):
        return sum(map(_bytes, values))
    return 0
