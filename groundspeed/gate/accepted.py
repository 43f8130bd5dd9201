"""Regressions that someone answered for: ``Perf-Accepted:`` trailers and the expiring allow-list file.

A trailer stands in a commit of the change, ``Perf-Accepted: softmax/triton_row halves the memory``, and covers every
metric of that implementation. The file's entries can be narrower and end on a date::

    [[accepted]]
    series = "softmax/triton_row"
    metric = "device_cold"        # optional, as is dtype
    until = 2027-01-31
    reason = "driver 590 is slow here, reported upstream"
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from groundspeed.errors import UserError
from groundspeed.gate.git import TRAILER, Trailer

_KEYS = {"series", "metric", "dtype", "until", "reason"}


@dataclass(frozen=True)
class Accepted:
    """One acceptance. ``series`` is a shell pattern of ``operator/implementation``; ``source`` says where it stands."""

    series: str
    reason: str
    source: str
    metric: str = "*"
    dtype: str = "*"
    until: datetime.date | None = None

    def covers(self, operator: str, implementation: str, dtype: str, metric: str) -> bool:
        """Whether a finding is accepted. A finding of a whole implementation (no dtype) needs an entry for all."""
        return (
            fnmatchcase(f"{operator}/{implementation}", self.series)
            and fnmatchcase(dtype, self.dtype)
            and fnmatchcase(metric, self.metric)
        )


def from_trailers(found: Iterable[Trailer]) -> tuple[list[Accepted], list[str]]:
    """The acceptances of trailers, and a remark for each line that accepts nothing because it gives no reason."""
    accepted, remarks = [], []
    for trailer in found:
        series, _, reason = trailer.text.partition(" ")
        source = f"commit {trailer.commit[:12]}"
        if "/" not in series or not reason.strip():
            remarks.append(f"{source}: '{TRAILER}: {trailer.text}' ignored: write OPERATOR/IMPLEMENTATION and a reason")
        else:
            accepted.append(Accepted(series, reason.strip(), source))
    return accepted, remarks


def from_file(text: str, source: str, today: datetime.date) -> tuple[list[Accepted], list[str]]:
    """The entries of an allow-list that have not expired, and a remark for each that has.

    Raises UserError for what is no allow-list: an entry without series, reason or date accepts nothing silently.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: {error}") from error
    entries = table.pop("accepted", [])
    if table or not isinstance(entries, list):
        raise UserError(f"{source}: expected [[accepted]] tables only, got {', '.join(table) or 'accepted = ...'}")
    accepted, remarks = [], []
    for number, entry in enumerate(entries, 1):
        item = _entry(entry, f"{source} entry {number}")
        if item.until is not None and item.until < today:
            remarks.append(f"{item.source}: {item.series} expired on {item.until}: {item.reason}")
        else:
            accepted.append(item)
    return accepted, remarks


def _entry(entry: object, source: str) -> Accepted:
    if not isinstance(entry, dict) or set(entry) - _KEYS:
        unknown = ", ".join(sorted(set(entry) - _KEYS)) if isinstance(entry, dict) else repr(entry)
        raise UserError(f"{source}: unknown {unknown}, expected {', '.join(sorted(_KEYS))}")
    for key in ("series", "reason"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise UserError(f"{source}: {key} is missing, expected a text")
    if type(entry.get("until")) is not datetime.date:
        raise UserError(f"{source}: until is missing or no date, expected for example until = 2027-01-31")
    for key in ("metric", "dtype"):
        if not isinstance(entry.get(key, "*"), str):
            raise UserError(f"{source}: {key} = {entry[key]!r}, expected a text")
    return Accepted(source=source, **entry)
