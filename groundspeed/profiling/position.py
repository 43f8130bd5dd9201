"""Where a call lies on the roofline: its rates beside the ceilings that this machine's records hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from groundspeed.analysis.roofline import Ceiling, ceiling
from groundspeed.analysis.stats import median
from groundspeed.operator import TIERS, Case, Operator
from groundspeed.records import Ceilings, Measurement, Record
from groundspeed.report.standing import standing
from groundspeed.report.stored import history, latest_records, newest_first


@dataclass(frozen=True)
class Position:
    """One call of the mathematical function: bytes, operations, and the time that the profiled call took.

    least
        The least time that measured ceilings allow, and which of them sets it; None without ceilings.
    """

    bytes_read: int
    bytes_written: int
    flops: int
    time_ns: float
    least: Ceiling | None = None

    @property
    def bytes_total(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def bytes_per_second(self) -> float | None:
        return self.bytes_total / self.time_ns * 1e9 if self.time_ns and self.bytes_total else None

    @property
    def flops_per_second(self) -> float | None:
        return self.flops / self.time_ns * 1e9 if self.time_ns and self.flops else None

    @property
    def intensity(self) -> float | None:
        """FLOP a byte."""
        return self.flops / self.bytes_total if self.bytes_total and self.flops else None

    @property
    def share(self) -> float | None:
        """Least time over the time it took; 1 is at the ceiling."""
        return self.least.least_ns / self.time_ns if self.least and self.time_ns else None


@dataclass(frozen=True)
class Stored:
    """What records say: the ceilings, and the measurement of this implementation and case that stands.

    same_code
        Whether that measurement is of the implementation as it is now.
    """

    ceilings: Ceilings | None = None
    run_id: str = ""
    device_cold_ns: float | None = None
    same_code: bool = False


def position(spec: Operator, case: Case, time_ns: float, ceilings: Ceilings | None) -> Position:
    """The position of a call that took so long."""
    traffic, flops = spec.traffic(case), spec.flop_count(case)
    least = ceiling(ceilings, spec.bound, case.dtype, flops, (traffic.read, traffic.write))
    return Position(traffic.read, traffic.write, flops, time_ns, least)


def stored(results: Path, machine: str, operator: str, implementation: str, case: Case, digest: str) -> Stored:
    """What a machine's records hold; newest ceilings, of another operator's record where this one's has none."""
    records, _ = latest_records(results, machine, TIERS)
    own = next((record for record in records if record.header.operator == operator), None)
    ceilings = own.header.ceilings if own else None
    kept, _ = history(newest_first(results, machine).get(operator, ()), TIERS)
    run_id, found = _measurement(kept, implementation, case)
    cold = found.samples.get("device_cold") if found else None
    return Stored(
        ceilings=ceilings or _any_ceilings(records),
        run_id=run_id if cold else "",
        device_cold_ns=median(cold) if cold else None,
        same_code=bool(found and found.implementation_digest == digest),
    )


def _measurement(records: Iterable[Record], implementation: str, case: Case) -> tuple[str, Measurement | None]:
    """The measurement that stands, and its run; of an operator's records, the newest first."""
    wanted = implementation, case.dtype, case.dims
    for part in standing(records):
        for entry in part.entries:
            if (entry.implementation, entry.dtype, entry.shape) == wanted:
                return part.record.header.run_id, entry
    return "", None


def _any_ceilings(records: Iterable[Record]) -> Ceilings | None:
    newest = sorted(records, key=lambda record: record.header.run_id, reverse=True)
    return next((record.header.ceilings for record in newest if record.header.ceilings), None)
