"""What can be done at a place of results, whichever kind it is."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Held:
    """A file at a place: its bytes, of when it is (seconds since 1970), and a digest, where the place says so.

    ``digest`` is ``md5:`` of the contents, or ``blob:`` and git's name of them.
    """

    size: int
    modified: float | None = None
    digest: str = ""

    def is_known_to_be(self, path: Path) -> bool:
        """Whether a local file is sure to have these contents."""
        stat = path.stat()
        if stat.st_size != self.size:
            return False
        if self.digest:
            return self.digest == digest(self.digest.partition(":")[0], path.read_bytes())
        return self.modified is not None and stat.st_mtime == self.modified


def digest(kind: str, payload: bytes) -> str:
    """The digest of contents that a place of this kind would name."""
    if kind == "md5":
        return f"md5:{hashlib.md5(payload, usedforsecurity=False).hexdigest()}"
    return f"blob:{hashlib.sha1(b'blob %d' % len(payload) + bytes(1) + payload, usedforsecurity=False).hexdigest()}"


class Shelf(Protocol):
    """Paths are relative to the place, with forward slashes. Each method raises UserError for what a user can mend."""

    def held(self) -> Mapping[str, Held]:
        """Every file there; of NOTES none, which are had by ``lines``."""

    def read(self, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Files' contents."""

    def add(self, files: Mapping[str, Path]) -> set[str]:
        """Put files where none are; the paths at which another one was by then, and which are left as they are."""

    def replace(self, path: str, payload: bytes) -> None:
        """Put a file that is never a record, over the one that is there."""

    def remove(self, paths: Collection[str]) -> None:
        """Delete files."""

    def lines(self) -> bytes:
        """The lines of NOTES."""

    def add_lines(self, new: bytes) -> None:
        """Add whole lines to NOTES."""

    def is_newer(self, path: str, payload: bytes, modified: float) -> bool:
        """Whether this version of a file, last changed at that time, is newer than the one that is there."""
