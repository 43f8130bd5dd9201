"""A folder of operators as bytes and back: stations have no checkout."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

_LEFT_OUT = {"__pycache__"}


def pack(folder: Path) -> bytes:
    """All files below a folder, the same bytes for the same files: no owners, no times."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and not _LEFT_OUT & set(inside.parts):
                entry = tarfile.TarInfo(inside.as_posix())
                content = path.read_bytes()
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def unpack(packed: bytes, folder: Path) -> Path:
    """Into a new folder, which is returned. Files may not leave it."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder
