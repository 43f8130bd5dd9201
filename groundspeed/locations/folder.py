"""A folder as a place of results: another disk, a mounted share, a ``file://`` URL."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from groundspeed.locations.kinds import NOTES, travelling
from groundspeed.locations.shelf import Held
from groundspeed.whole_files import add_whole, replace_whole


class FolderShelf:
    """Raises OSError as it comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def held(self) -> Mapping[str, Held]:
        if not self._folder.exists():
            return {}
        stats = {path: (self._folder / path).stat() for path in travelling(self._folder) if path != NOTES}
        return {path: Held(stat.st_size, stat.st_mtime) for path, stat in stats.items()}

    def read(self, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            yield path, (self._folder / path).read_bytes()

    def add(self, files: Mapping[str, Path]) -> set[str]:
        late = set()
        for path, source in files.items():
            if not add_whole(self._folder / path, source.read_bytes()):
                late.add(path)
        return late

    def replace(self, path: str, payload: bytes) -> None:
        replace_whole(self._folder / path, payload)

    def remove(self, paths: Collection[str]) -> None:
        for path in paths:
            (self._folder / path).unlink(missing_ok=True)

    def lines(self) -> bytes:
        try:
            return (self._folder / NOTES).read_bytes()
        except FileNotFoundError:
            return b""

    def add_lines(self, new: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / NOTES).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(new)
            file.flush()
            os.fsync(file.fileno())

    def is_newer(self, path: str, payload: bytes, modified: float) -> bool:
        return modified > (self._folder / path).stat().st_mtime
