"""Where compilers keep what they have compiled, and notes of what has been: a note is gone with the cache it is of."""

from __future__ import annotations

import functools
import getpass
import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from groundspeed.caches import cache_folder
from groundspeed.errors import UserError
from groundspeed.installed import version_of
from groundspeed.whole_files import replace_whole

_NOTES = "groundspeed-notes"
_PACKAGES = ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x")


def cache_of(backend: str) -> Path:
    """The folder in which a back end's compiler keeps its work: by its variable, else where it is by default.

    torch_compile's is Inductor's. Raises UserError for a back end without one.
    """
    match backend:
        case "torch":
            return _named("TORCHINDUCTOR_CACHE_DIR") or Path(tempfile.gettempdir()) / f"torchinductor_{_user()}"
        case "triton":
            home = _named("TRITON_HOME") or Path.home()
            return _named("TRITON_CACHE_DIR") or home / ".triton" / "cache"
        case "cupy":
            return _named("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache"
        case "cuda":
            return cache_folder() / "build"
    raise UserError(f"no cache is known of back end {backend!r}")


@dataclass(frozen=True)
class Note:
    """That an implementation, by its digest, was compiled for a case, by its digest, on a kind of GPU."""

    backend: str
    implementation_digest: str
    case_digest: str
    device: str

    @property
    def path(self) -> Path:
        words = [self.implementation_digest, self.case_digest, self.device, *_versions()]
        return cache_of(self.backend) / _NOTES / _hashed(words)

    def is_there(self) -> bool:
        try:
            return self.path.exists()
        except OSError:  # Python 3.11 raises it for a folder that may not be searched
            return False

    def leave(self) -> None:
        """Raises OSError where the cache cannot be written to."""
        replace_whole(self.path, b"")


@functools.cache
def _versions() -> tuple[str, ...]:
    """Of what compiles; a thousand notes ask, and each answer reads files."""
    return tuple(version_of(name) for name in _PACKAGES)


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def tunings_of(device: str) -> Path:
    """Where the choices of Triton's autotuners for a kind of GPU are kept, beside the kernels that they chose among."""
    return cache_of("triton") / "groundspeed-tunings" / _hashed([device, *_versions()])


def _hashed(words: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def _user() -> str:
    """As torch has it: a container's user may have no name."""
    try:
        name = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        name = f"uid_{os.getuid()}"
    return re.sub(r'[\\/:*?"<>|]', "_", name)
