"""Whether results can be kept, asked before minutes are spent on them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from groundspeed.errors import UserError


def check_writable(results: Path) -> None:
    """Make and write a file where results go, and leave nothing. Raises UserError when that cannot be done.

    Permissions alone do not tell: /proc and a read-only file system look writable to root.
    """
    folder = results
    try:
        folder = next(folder for folder in (results, *results.parents) if folder.exists())
        if not folder.is_dir():
            raise UserError(f"nothing can be kept in {results}: {folder} is a file; pass --results DIR")
        with tempfile.TemporaryDirectory(prefix=".writable-", dir=folder) as made:
            (Path(made) / "file").write_bytes(b"x")
    except OSError as error:
        why = f"{folder} cannot be written to ({error.strerror})"
        raise UserError(f"nothing can be kept in {results}: {why}; pass --results DIR") from error
