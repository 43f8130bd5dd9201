"""Files that a reader sees whole or not at all: written under another name, on disk, before they get their own."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def replace_whole(path: Path, payload: bytes) -> None:
    """Write a file, and its folder: a reader sees the old one or the new. Raises OSError, and leaves nothing torn."""
    with _written(path, payload) as temporary:
        os.replace(temporary, path)


def replace_output(path: Path, payload: bytes) -> None:
    """Write a file that somebody named: the old one or the new, where a link leads, with the mode that it has.

    What is no file (a pipe, /dev/stdout), or lies in a folder that takes no other, is written as it is. Raises OSError
    that names the path.
    """
    try:
        mode = path.stat().st_mode if path.exists() else None  # not by resolve(): where /dev/stdout leads has no name
        target = path.resolve()
        if mode is not None and not (stat.S_ISREG(mode) and os.access(target.parent, os.W_OK)):
            path.write_bytes(payload)
            return
        replace_whole(target, payload)
        if mode is not None:
            os.chmod(target, stat.S_IMODE(mode))
    except OSError as error:
        error.filename = str(path)
        raise


def add_whole(path: Path, payload: bytes) -> bool:
    """Write a file, and its folder, unless there is one by then: False, and that one stays. Raises OSError.

    Two writers cannot both succeed: a link to a name that is taken fails, a rename would not.
    """
    with _written(path, payload) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _written(path: Path, payload: bytes) -> Iterator[str]:
    """The contents beside where they belong; gone at the end, unless they were given their name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):  # renamed
            os.unlink(temporary)
