"""Putting what a station measured into the store: whole, of the right run, and once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.records import RecordError, read_record


def add_once(path: Path, payload: bytes) -> bool:
    """Put a record file in its place; False when there is one already, which stays as it is.

    Two drivers cannot both succeed: the name is given by a link, which the file system gives once. Raises UserError
    for a payload that is no whole record of the place it is for, and when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        _check(Path(temporary), path)
        os.chmod(temporary, 0o644)
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.unlink(temporary)


def _check(written: Path, path: Path) -> None:
    try:
        header = read_record(written).header
    except RecordError as error:
        raise UserError(f"{path.name}: what the station sent is no record: {error}") from error
    said = header.machine, header.run_id, header.operator
    expected = path.parent.parent.parent.name, path.parent.name, path.name.partition(".")[0]
    if said != expected:
        raise UserError(f"{path.name}: what the station sent is of {' '.join(said)}, expected {' '.join(expected)}")
