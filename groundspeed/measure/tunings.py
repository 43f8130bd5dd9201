"""What autotuners learnt in one process, for the other side of its comparison and for the processes after it.

A tuning is kept under the digest of the implementation's code: equal code on both sides has one tuning, changed code
has one of its own. So each version is tuned once, and not once a process.

Of the whole implementation's code, and not of the tuned kernel's alone: which configuration is best depends on what the
host's code passes too (the grid, strides, constants such as the number of tiles that share a weight), and the key of an
autotuner need not have that. An unchanged kernel that is called in another way would get the choice of the old way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from groundspeed.whole_files import replace_whole

Learnt = Mapping[str, Any]  # by kernel; what a back end's ``tuning`` gives, as JSON can hold it


@dataclass(frozen=True)
class Tunings:
    """A folder with one file an implementation."""

    folder: Path

    def read(self, digest: str) -> Learnt:
        """What is known of an implementation; nothing where it was never tuned."""
        path = self._path(digest)
        if not path.is_file():
            return {}
        known: dict[str, Any] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return known

    def write(self, digest: str, learnt: Learnt) -> None:
        """Keep all that is known now; a reader never sees half of it. What cannot be written is tuned again."""
        if any(learnt.values()):
            with contextlib.suppress(OSError):
                replace_whole(self._path(digest), msgspec.json.encode(learnt))

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"
