"""What ``groundspeed check --keep`` kept, put together from as many pieces as it took: a page of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed.errors import uncoloured
from groundspeed.records import SUFFIX, Header, Measurement, Record, RecordError, read_record
from groundspeed.report.columns import LIBRARIES, TITLES, column_of
from groundspeed.report.remarks import count, failed, skipped
from groundspeed.report.style import Style

There = Callable[[str, Measurement], bool]
"""(operator, row of it) → whether it is of something that there still is."""


@dataclass(frozen=True)
class KeptChecks:
    """The newest row of every implementation and case, by operator, and the headers of the checks they are of."""

    entries: dict[str, list[Measurement]]
    headers: tuple[Header, ...]

    def __bool__(self) -> bool:
        return bool(self.entries)


def kept_checks(results: Path, machine: str, there: There) -> tuple[KeptChecks, list[str]]:
    """What was kept of a machine, of what is still there, and what was wrong with files that cannot be read."""
    records, problems = [], []
    for path in sorted((results / machine / "checks").glob(f"*/*{SUFFIX}"), key=lambda p: (p.parent.name, p.name)):
        try:
            records.append(read_record(path))
        except RecordError as error:
            problems.append(str(error))
    return _newest(records, there), problems


def _newest(records: Sequence[Record], there: There) -> KeptChecks:
    """Of each implementation and case the last row that says most, see ``_displaces``. ``records`` are oldest first."""
    rows: dict[str, dict[tuple[str, str], tuple[Header, Measurement]]] = {}
    for record in records:
        found = rows.setdefault(record.header.operator, {})
        own = [row for row in record.measurements if there(record.header.operator, row)]
        for row in map(_clean, own):
            key = row.implementation, row.case_label
            if key not in found or _displaces(row, found[key][1]):
                found[key] = record.header, row
    headers = {header.run_id + header.operator: header for found in rows.values() for header, _ in found.values()}
    entries = {operator: [row for _, row in rows[operator].values()] for operator in sorted(rows) if rows[operator]}
    return KeptChecks(entries, tuple(sorted(headers.values(), key=lambda header: header.started)))


def _displaces(row: Measurement, older: Measurement) -> bool:
    """Whether a newer row says more of an implementation than one before it.

    One that was skipped does not where the same code had been judged, or where it was not even loaded, which is why it
    has no digest: a library was not installed, say.
    """
    if row.status != "skipped":
        return True
    if older.status == "skipped":
        return bool(row.implementation_digest) or not older.implementation_digest
    return row.implementation_digest not in ("", older.implementation_digest)


def changed_since(kept: KeptChecks, digest: Callable[[str, str], str]) -> dict[str, int]:
    """``operator/implementation`` → how many of its judged rows are of other code than ``digest`` gives it by now."""
    judged = [(operator, row) for operator, rows in kept.entries.items() for row in rows if row.implementation_digest]
    return dict(
        Counter(
            f"{operator}/{row.implementation}"
            for operator, row in judged
            if row.status != "skipped" and row.implementation_digest != digest(operator, row.implementation)
        )
    )


def _clean(row: Measurement) -> Measurement:
    """Without control characters in what a library said: older records keep them."""
    return msgspec.structs.replace(row, reason=uncoloured(row.reason)) if row.reason else row


def markdown(kept: KeptChecks) -> list[str]:
    """Where and when, a table of operators by back ends, then what failed and what was left out, with the reasons."""
    plain = Style()
    counts = {status: count(kept.entries, status) for status in ("ok", "failed", "skipped")}
    found = {column_of(row.backend) for rows in kept.entries.values() for row in rows}
    columns = TITLES | ({LIBRARIES: LIBRARIES} if LIBRARIES in found else {})
    lines = [
        _where(kept.headers),
        "",
        f"{counts['ok']:,} checks passed, {counts['failed']:,} failed, {counts['skipped']:,} skipped. A cell says "
        "how many implementations there are and how many of their cases are right, of those that were not skipped.",
        "",
        "| operator | " + " | ".join(columns.values()) + " |",
        "| --- |" + " ---: |" * len(columns),
        *(
            f"| {operator} | " + " | ".join(_cell(rows, column) for column in columns) + " |"
            for operator, rows in kept.entries.items()
        ),
        "",
    ]
    rest = [*failed(kept.entries, plain), *skipped(kept.entries, plain)]
    return [*lines, "```", *rest[:-1], "```"] if rest else lines[:-1]


def _where(headers: Sequence[Header]) -> str:
    last = headers[-1].environment
    parts = [
        last.device_name,
        f"driver {last.driver}" if last.driver else "",
        f"torch {last.torch}" if last.torch else "",
        f"Triton {last.triton}" if last.triton else "",
        f"CuPy {last.cupy}" if last.cupy else "",
        *(f"{name} {version}" for name, version in _libraries(headers).items()),
    ]
    commits = Counter((header.commit[:8] or "no commit") + ("+" if header.dirty else "") for header in headers)
    days = sorted({header.started[:10] for header in headers})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    named = ", ".join(f"`{commit}`" for commit in commits)
    return f"{', '.join(part for part in parts if part)}; {when}; commit{'s' if len(commits) > 1 else ''} {named}."


def _libraries(headers: Sequence[Header]) -> dict[str, str]:
    """The newest version of each that was checked with; the checks of one operator need not have had all."""
    found = {name: version for header in headers for name, version in header.environment.libraries.items()}
    return dict(sorted(found.items()))


def _cell(rows: Sequence[Measurement], column: str) -> str:
    own = [row for row in rows if column_of(row.backend) == column]
    if not own:
        return "–"
    names = {row.implementation for row in own}
    tried = [row for row in own if row.status != "skipped"]
    right = sum(row.status == "ok" for row in tried)
    return f"{len(names)}: {right} of {len(tried)}" if tried else f"{len(names)}: skipped"
