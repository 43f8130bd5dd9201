"""Records by operator, the newest first, each read when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from groundspeed.records import Record, RecordError, read_record

LOOK_BACK = 30  # records of an operator: many runs that were narrowed hide no whole one, and a page stays quick


class Shelf:
    """The newest ``LOOK_BACK`` records of each operator on one machine.

    What cannot be read is passed over and kept in ``problems``.
    """

    def __init__(self, newest_first: Mapping[str, Sequence[Path | Record]]) -> None:
        self._entries = {operator: list(entries[:LOOK_BACK]) for operator, entries in newest_first.items()}
        self.problems: list[RecordError] = []

    @classmethod
    def of(cls, records: Iterable[Record]) -> Shelf:
        """Of records in memory, in any order."""
        kept: dict[str, list[Path | Record]] = {}
        for record in sorted(records, key=lambda record: record.header.started, reverse=True):
            kept.setdefault(record.header.operator, []).append(record)
        return cls(kept)

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    def newest(self, operator: str) -> Iterator[Record]:
        """Its records, the newest first."""
        entries = self._entries.get(operator, [])
        for place, entry in enumerate(entries):
            record = self._read(entry) if isinstance(entry, Path) else entry
            if record is not None:
                entries[place] = record
                yield record

    def _read(self, path: Path) -> Record | None:
        try:
            return read_record(path)
        except RecordError as error:
            if str(error) not in map(str, self.problems):
                self.problems.append(error)
            return None
