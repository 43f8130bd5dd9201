"""Putting what a station measured into the store: whole, of the right run, and once."""

from __future__ import annotations

from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.records import RecordError, parse_record
from groundspeed.whole_files import add_whole


def add_once(path: Path, payload: bytes) -> bool:
    """Put a record file in its place; False when there is one already, which stays as it is.

    Of two drivers one succeeds. Raises UserError, before anything is written, for a payload that is no whole record of
    the place it is for, and when it cannot be written.
    """
    _check(path, payload)
    try:
        return add_whole(path, payload)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def _check(path: Path, payload: bytes) -> None:
    try:
        header = parse_record(path, payload).header
    except RecordError as error:
        raise UserError(f"what the station sent is no record: {error}") from error
    said = header.machine, header.run_id, header.operator
    expected = path.parent.parent.parent.name, path.parent.name, path.name.partition(".")[0]
    if said != expected:
        raise UserError(f"{path.name}: what the station sent is of {' '.join(said)}, expected {' '.join(expected)}")
