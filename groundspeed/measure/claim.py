"""One measurement at a time on a GPU: the system's lock on a file that the GPU's UUID names.

The lock ends with the process that holds it, however that ends. It keeps two runs of one user apart; of others'
processes groundspeed.measure.neighbours knows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from groundspeed.caches import user_cache
from groundspeed.errors import UserError
from groundspeed.measure.gpu_state import hashed

_LOOK = 0.5  # seconds between two tries


class GpuBusy(UserError):
    """A GPU that did not become free in time."""


@dataclass(frozen=True)
class Patience:
    """How many seconds a GPU is waited for; 0 is not at all. ``advice`` is what to type when they are over."""

    seconds: float = 0.0
    advice: str = ""

    def over(self, what: str) -> GpuBusy:
        """What is raised when it is over."""
        waited = f", and did not become free within {self.seconds / 60:.3g} min" if self.seconds else ""
        return GpuBusy(f"{what}{waited}" + (f"; {self.advice}" if self.advice else ""))


@contextlib.contextmanager
def claim(uuid: str, label: str, patience: Patience, tell: Callable[[str], None] = lambda what: None) -> Iterator[None]:
    """Hold a GPU for measuring. ``tell`` is called with the reason when it has to be waited for, again and again.

    Raises GpuBusy, and UserError when there is no place for the lock.
    """
    path = lock_folder() / f"gpu-{hashed(uuid)}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = f"{path}: {error.strerror}"
        raise UserError(f"{label} cannot be kept from other runs: {why}; set XDG_CACHE_HOME to a folder") from error
    try:
        _lock(descriptor, label, patience, tell)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_folder() -> Path:
    """The user's cache folder, and not the runtime folder: only some sessions of a user have that one."""
    return user_cache() / "locks"


def _lock(descriptor: int, label: str, patience: Patience, tell: Callable[[str], None]) -> None:
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace")
            what = f"another groundspeed (process {holder or 'unknown'}) measures on {label}"
        # Never at the first try: a process that the last holder was just starting has its files for a moment.
        if time.monotonic() - began >= max(patience.seconds, _LOOK):
            raise patience.over(what)
        if patience.seconds:
            tell(what)
        time.sleep(_LOOK)
