"""Two to four plain sentences on what bounds a call, from what the profiler saw.

Where counters were read, the longest kernel decides: a part of the GPU above 60 % of its own peak is what bounds it
(the threshold of Nsight Compute's own speed-of-light rule), and when none is, latency does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundspeed.profiling.kernels import Kernel
from groundspeed.profiling.ncu import STALLS
from groundspeed.profiling.occupancy import Multiprocessor, Occupancy, theoretical
from groundspeed.profiling.position import Position
from groundspeed.report.units import counted, duration, percent, rate, significant, size

MOST = 4
_BUSY = 60.0  # per cent of a part's peak
_NEAR = 0.8  # of the ceiling: little is left to gain
_FEW_THREADS = 28.0  # of 32 in an instruction
_CONFLICTS = 0.1  # of the passes of shared memory
_SHORT_NS = 5000.0

_PARTS = {"dram_pct": "DRAM", "sm_pct": "The multiprocessors", "l2_pct": "The L2 cache", "l1_pct": "The L1 cache"}


def sentences(
    kernels: Sequence[Kernel], where: Position, of: Multiprocessor | None, device: str, multiprocessors: int
) -> list[str]:
    """What bounds it, most important first; at least two where anything ran."""
    if not kernels:
        return ["Nothing ran on the device: the output is a view of an input, or empty."]
    main = kernels[0]
    found = [*_bound(main, where, device, multiprocessors), *_hindrances(main, of)]
    found[1:1] = list(_several(kernels, device))
    if len(found) < 2:
        found += [_alone(main, where)] if device != "cuda" else list(_ceiling(where))
    return found[:MOST]


def times(value: float) -> str:
    """How often something happens in a call: whole numbers as such."""
    return str(round(value)) if value == round(value) else significant(value)


def fits(kernel: Kernel, of: Multiprocessor | None) -> Occupancy | None:
    """The theoretical occupancy of a kernel whose launch is known."""
    if of is None or kernel.threads is None or kernel.registers is None:
        return None
    return theoretical(of, kernel.threads, kernel.registers, kernel.shared_bytes or 0)


def conflict_share(kernel: Kernel) -> float | None:
    """Passes of shared memory that bank conflicts added, of all; None where nothing was counted."""
    seen = kernel.counters
    passes = seen.get("wavefronts_load", 0.0) + seen.get("wavefronts_store", 0.0)
    added = seen.get("conflicts_load", 0.0) + seen.get("conflicts_store", 0.0)
    return added / passes if passes else None


def _bound(main: Kernel, where: Position, device: str, multiprocessors: int) -> Iterator[str]:
    if device != "cuda":
        reached = [f"{rate(value, unit)}" for value, unit in _rates(where) if value]
        yield f"{_call(where)} takes {duration(where.time_ns)}" + (f": {' and '.join(reached)}." if reached else ".")
        return
    if "dram_pct" in main.counters or "sm_pct" in main.counters:
        yield _by_counters(main, multiprocessors)
        return
    yield from _ceiling(where)
    if main.duration_ns < _SHORT_NS:
        yield f"{main.short} is short ({duration(main.duration_ns)}): much of it is starting up and running out."
    else:
        yield "What happens inside the kernel takes counters to see: profile --with ncu."


def _by_counters(main: Kernel, multiprocessors: int) -> str:
    seen = {key: main.counters[key] for key in _PARTS if key in main.counters}
    top = max(seen, key=lambda key: seen[key])
    others = ", ".join(f"{_PARTS[key].removeprefix('The ')} at {seen[key]:.0f} %" for key in seen if key != top)
    if seen[top] >= _BUSY:
        beside = f", {others}" if others else ""
        verb = "bound" if top == "sm_pct" else "bounds"
        return f"{_PARTS[top]} {verb} it: {seen[top]:.0f} % of peak{beside}."
    waves = main.counters.get("waves")
    if waves is not None and waves < 1:
        filled = f"{counted(main.blocks, 'block')} fill" if main.blocks else "the grid fills"
        return (
            f"Too little work bounds it: {filled} {percent(waves)} of what {multiprocessors} multiprocessors "
            f"hold at once; nothing is above {seen[top]:.0f} % of its peak."
        )
    stall = _worst_stall(main)
    waiting = f"; its warps wait mostly for {stall}" if stall else ""
    return f"Latency bounds it: no part is above {_BUSY:.0f} % of its peak ({_list(seen)}){waiting}."


def _list(seen: dict[str, float]) -> str:
    return ", ".join(f"{_PARTS[key].removeprefix('The ')} {value:.0f} %" for key, value in seen.items())


def _worst_stall(main: Kernel) -> str:
    waits = {name: main.counters[f"stall_{name}"] for name in STALLS if f"stall_{name}" in main.counters}
    worst = max(waits, key=lambda name: waits[name], default="")
    return STALLS[worst] if worst and waits[worst] > 0 else ""


def _several(kernels: Sequence[Kernel], device: str) -> Iterator[str]:
    launches = sum(kernel.launches for kernel in kernels)
    if launches <= 1:
        return
    total = sum(kernel.time_ns for kernel in kernels)
    share = percent(kernels[0].time_ns / total) if total else "–"
    what = "kernels, copies and fills" if device == "cuda" else "operators"
    yield f"One call runs {times(launches)} {what}; {kernels[0].short} takes {share} of their time."


def _hindrances(main: Kernel, of: Multiprocessor | None) -> Iterator[str]:
    seen = main.counters
    if main.spill_bytes:
        loads = seen.get("local_loads")
        counted = f", {loads:,.0f} instructions load them" if loads else ""
        yield f"Registers spill: {main.spill_bytes} bytes a thread go to local memory{counted}."
    conflicts = conflict_share(main)
    if conflicts is not None and conflicts > _CONFLICTS:
        yield f"Bank conflicts add {percent(conflicts)} of the passes of shared memory."
    threads = seen.get("threads_per_instruction")
    if threads is not None and threads < _FEW_THREADS:
        yield f"Warps diverge or are not full: {significant(threads)} of 32 threads take part in an instruction."
    fit = fits(main, of)
    if fit is not None and fit.share < 0.6 and not seen.get("dram_pct", 0.0) >= _BUSY:
        yield (
            f"At most {percent(fit.share)} of the warps fit, limited by {fit.limiter} "
            f"({main.registers} registers a thread, {size(main.shared_bytes or 0)} of shared memory a block)."
        )
    achieved = seen.get("occupancy_pct")
    if achieved is not None and fit is not None and achieved < 70 * fit.share:
        yield f"Only {achieved:.0f} % of the warps are in flight where {percent(fit.share)} fit: the work is uneven."


def _ceiling(where: Position) -> Iterator[str]:
    if where.share is None or where.least is None:
        yield f"{_call(where)} takes {duration(where.time_ns)}; no ceilings of this machine are on record to judge it."
        return
    reached = _reached(where)
    if where.share >= _NEAR:
        what = {"memory": "Memory", "compute": "Arithmetic", "link": "The link from the host"}[where.least.bound]
        yield f"{what} bounds it: {reached} is {percent(where.share)} of what this machine reached."
        return
    yield (
        f"It takes {significant(1 / where.share)} times the {duration(where.least.least_ns)} that its "
        f"{'operations' if where.least.bound == 'compute' else 'bytes'} would ({reached})."
    )


def _alone(main: Kernel, where: Position) -> str:
    return f"{main.short} is all that runs, for {percent(min(1.0, main.time_ns / where.time_ns))} of that time."


def _rates(where: Position) -> tuple[tuple[float | None, str], ...]:
    return (where.bytes_per_second, "B/s"), (where.flops_per_second, "FLOP/s")


def _reached(where: Position) -> str:
    if where.least is not None and where.least.bound == "compute" and where.flops_per_second:
        return rate(where.flops_per_second, "FLOP/s")
    return rate(where.bytes_per_second, "B/s") if where.bytes_per_second else "its rate"


def _call(where: Position) -> str:
    """``A call over 128 MiB``."""
    return f"A call over {size(where.bytes_total)}" if where.bytes_total else "A call"
