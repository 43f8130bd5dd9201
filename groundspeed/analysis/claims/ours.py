"""What one record says to a claim: a value for each case that the claim is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from groundspeed.analysis.claims.ledger import Claim, patterns_of
from groundspeed.analysis.claims.quantities import QUANTITIES
from groundspeed.analysis.roofline import ceiling, compute_time, memory_time
from groundspeed.analysis.speedup import paired_speedup
from groundspeed.analysis.stats import median
from groundspeed.records import Measurement, Record

Value = tuple[str, float]  # case label, value in the quantity's unit
_Of = Callable[[Record, Measurement], float | None]


def values(claim: Claim, record: Record) -> list[Value]:
    """A value for each case that the record can answer for, in the record's order; none where it cannot."""
    if claim.is_ratio:
        return _ratios(claim, record)
    if claim.quantity in _OF_DEVICE:
        found = _OF_DEVICE[claim.quantity](claim, record)
        return [] if found is None else [("the device", found)]
    of = _with_kernels(claim) if claim.kernels else _OF_ONE[claim.quantity]
    best: dict[str, float] = {}
    prefer = min if QUANTITIES[claim.quantity].better == "lower" else max
    for entry in entries(record, claim.implementation, claim.dtype, claim.cases):
        value = of(record, entry)
        if value is not None:
            label = entry.case_label
            best[label] = prefer(best[label], value) if label in best else value
    return list(best.items())


def entries(record: Record, patterns: str, dtype: str, cases: str) -> Iterator[Measurement]:
    """What was measured of implementations and cases that match."""
    names = patterns_of(patterns)
    for entry in record.measurements:
        if entry.status != "ok" or not any(fnmatchcase(entry.implementation, name) for name in names):
            continue
        if dtype in ("", entry.dtype) and fnmatchcase(entry.shape_label, cases or "*"):
            yield entry


def _ratios(claim: Claim, record: Record) -> list[Value]:
    """Of each case the cheapest implementation that is meant against the baseline on the case that belongs to it."""
    cost = COSTS[claim.quantity]
    over = cheapest(
        entries(record, claim.over, claim.baseline_dtype or claim.dtype, claim.baseline_cases or claim.cases), cost
    )
    found = []
    for one in cheapest(entries(record, claim.implementation, claim.dtype, claim.cases), cost):
        found += [
            (one.case_label, _ratio(claim, base, one))
            for base in over
            if (claim.baseline_dtype or base.dtype == one.dtype)
            and (claim.baseline_cases or base.shape == one.shape)
            and base is not one
        ]
    return found


def cheapest(found: Iterator[Measurement], cost: Callable[[Measurement], float | None]) -> list[Measurement]:
    """Of each case the one that costs least."""
    best: dict[str, tuple[float, Measurement]] = {}
    for entry in found:
        value = cost(entry)
        if value and (entry.case_label not in best or value < best[entry.case_label][0]):
            best[entry.case_label] = value, entry
    return [entry for _, entry in best.values()]


def _ratio(claim: Claim, base: Measurement, one: Measurement) -> float:
    """Round by round where both ran in the same ones."""
    samples = {"speedup": "device_cold", "call speedup": "call"}.get(claim.quantity)
    if samples and base.case_label == one.case_label:
        return paired_speedup(base.samples[samples], one.samples[samples])[0].value
    cost = COSTS[claim.quantity]
    return (cost(base) or 0.0) / (cost(one) or 1.0)


def _time(quantity: str) -> Callable[[Measurement], float | None]:
    def of(entry: Measurement) -> float | None:
        samples = entry.samples.get(quantity)
        return median(samples) if samples else None

    return of


_cold, _hot, _call, _host = (_time(name) for name in ("device_cold", "device_hot", "call", "host"))


def _per_item(entry: Measurement) -> float | None:
    time = _cold(entry)
    return time / entry.items if time and entry.items else None


COSTS: dict[str, Callable[[Measurement], float | None]] = {
    "speedup": _cold,
    "call speedup": _call,
    "memory": lambda entry: entry.memory_bytes,
    "energy": lambda entry: entry.energy_nj,
    "throughput": _per_item,
}


def _rate(record: Record, entry: Measurement) -> float | None:
    time = _cold(entry)
    return entry.flops / time / 1e3 if time and entry.flops else None


def _bandwidth(record: Record, entry: Measurement) -> float | None:
    time, moved = _cold(entry), entry.bytes_read + entry.bytes_written
    return moved / time if time and moved else None


def _ceiling(record: Record, entry: Measurement) -> float | None:
    header, traffic = record.header, (entry.bytes_read, entry.bytes_written)
    top = ceiling(header.ceilings, header.bound, entry.dtype, entry.flops, traffic, entry.bus_bytes)
    time = _cold(entry)
    return 100 * top.least_ns / time if top and time else None


def _bandwidth_ceiling(record: Record, entry: Measurement) -> float | None:
    ceilings, time = record.header.ceilings, _cold(entry)
    least = memory_time(ceilings, entry.bytes_read, entry.bytes_written) if ceilings else None
    return 100 * least / time if least and time else None


def _launch(record: Record, entry: Measurement) -> float | None:
    time = _host(entry)
    return time / len(entry.kernels) / 1e3 if time and entry.kernels else None


def _registers(record: Record, entry: Measurement) -> float | None:
    return float(max(one.registers for one in entry.resources)) if entry.resources else None


def _intensity(record: Record, entry: Measurement) -> float | None:
    moved = entry.bytes_read + entry.bytes_written
    return entry.flops / moved if entry.flops and moved else None


def _shares(record: Record, entry: Measurement) -> tuple[float, float, float] | None:
    """Launch, compute and memory parts of a call's time in per cent; they add up to 100.

    The device's own time is split by the roofline: operations take what they take at the matmul rate of the run, the
    rest of it goes to memory.
    """
    call, device, ceilings = _call(entry), _hot(entry), record.header.ceilings
    compute = compute_time(ceilings, entry.dtype, entry.flops) if ceilings else None
    if not call or not device or not compute:
        return None
    launch, compute = max(0.0, call - device), min(compute, device, call)
    return 100 * launch / call, 100 * compute / call, 100 * (call - launch - compute) / call


def _share(place: int) -> _Of:
    def of(record: Record, entry: Measurement) -> float | None:
        shares = _shares(record, entry)
        return None if shares is None else shares[place]

    return of


_OF_ONE: dict[str, _Of] = {
    "rate": _rate,
    "bandwidth": _bandwidth,
    "ceiling": _ceiling,
    "bandwidth ceiling": _bandwidth_ceiling,
    "launch": _launch,
    "registers": _registers,
    "intensity": _intensity,
    "launch share": _share(0),
    "compute share": _share(1),
    "memory share": _share(2),
}


def _with_kernels(claim: Claim) -> _Of:
    def of(record: Record, entry: Measurement) -> float | None:
        meant = _meant(entry.kernels, claim.kernels, claim.part)
        if not any(meant):
            return None
        if claim.quantity == "kernel count":
            others = len(meant) - sum(meant)
            return sum(meant) / others if others else None
        times = entry.kernel_ns
        if len(times) != len(meant) or not sum(times):
            return None
        return 100 * sum(time for time, one in zip(times, meant, strict=True) if one) / sum(times)

    return of


def _meant(kernels: Sequence[str], pattern: str, part: int) -> list[bool]:
    """Which kernels: those that match, or with ``part`` n those between the n-th match and the next."""
    matches = [re.search(pattern, kernel) is not None for kernel in kernels]
    if not part:
        return matches
    seen, meant = 0, []
    for match in matches:
        seen += match
        meant.append(seen == part and not match)
    return meant


def _device_bandwidth(claim: Claim, record: Record) -> float | None:
    ceilings = record.header.ceilings
    return ceilings.copy / 1e9 if ceilings and ceilings.copy else None


def _device_rate(claim: Claim, record: Record) -> float | None:
    ceilings = record.header.ceilings
    rate = ceilings.matmul.get(claim.dtype, 0.0) if ceilings else 0.0
    return rate / 1e12 if rate else None


def _ridge(claim: Claim, record: Record) -> float | None:
    rate, bandwidth = _device_rate(claim, record), _device_bandwidth(claim, record)
    return 1e3 * rate / bandwidth if rate and bandwidth else None


_OF_DEVICE: dict[str, Callable[[Claim, Record], float | None]] = {
    "ridge": _ridge,
    "device bandwidth": _device_bandwidth,
    "device rate": _device_rate,
}
