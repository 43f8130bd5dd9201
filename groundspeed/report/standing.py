"""Which stored measurements of an operator stand: of each implementation and case the newest, over all its records.

A run that was narrowed to some implementations or cases so takes nothing from the others. A failure stands as a time
does: it is not hidden by an older success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from groundspeed.analysis.speedup import Row, speedup_table
from groundspeed.records import Measurement, Record


@dataclass(frozen=True)
class Standing:
    """A record, and those of its measurements that were timed and that nothing newer replaces.

    The record stays whole: a speedup is over the baseline of the same run, a share of the ceilings of the same session.
    """

    record: Record
    entries: tuple[Measurement, ...]

    def rows(self) -> list[tuple[Measurement, Row]]:
        """Each of the measurements with its row of the record's table."""
        kept = {_key(entry) for entry in self.entries}
        table = zip(self.record.measurements, speedup_table(self.record), strict=True)
        return [(entry, row) for entry, row in table if _key(entry) in kept]


def standing(records: Iterable[Record], there: Callable[[Measurement], bool] = lambda entry: True) -> list[Standing]:
    """What stands of the records of one operator on one machine, which come newest first (``stored.history``).

    Measurements of a case that was another one when they were taken (its digest is not that of the newest record that
    has the case) count for nothing, nor do those that ``there`` denies: of implementations and cases that are gone.
    """
    digests: dict[str, str] = {}
    newest: dict[tuple[str, str], Measurement] = {}
    found = []
    for record in records:
        for entry in record.measurements:
            digests.setdefault(entry.case_label, entry.case_digest)
        said = [
            entry
            for entry in record.measurements
            if entry.case_digest == digests[entry.case_label]
            and not _settled(newest.get(_key(entry)), entry)
            and there(entry)
        ]
        newest |= {_key(entry): entry for entry in said}
        timed = tuple(entry for entry in said if entry.status == "ok")
        if timed:
            found.append(Standing(record, timed))
    return found


def _settled(newer: Measurement | None, entry: Measurement) -> bool:
    """Whether a newer word on the same implementation and case leaves nothing of an older one.

    Skipping code that has not changed since does not: a library was missing, or memory was short, on that day. Code
    that has changed may be what refuses the case now.
    """
    if newer is None:
        return False
    return newer.status != "skipped" or newer.implementation_digest != entry.implementation_digest


def _key(entry: Measurement) -> tuple[str, str]:
    return entry.implementation, entry.case_label
