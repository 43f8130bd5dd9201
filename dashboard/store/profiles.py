"""Pages of profiles beside the records of a machine: which there are of an implementation, and what one says.

They are listed when a reader asks, each time: a folder or a few of them, so that nothing is scanned before and nothing
is out of date. The names that they are asked by may come from a link. Each is one part of a path, what is hidden is
passed over, and links of the file system are not followed: nothing outside is listed or read.
"""

from __future__ import annotations

import functools
import html
import os
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from groundspeed.analysis.profiles import FOLDER, SUFFIX
from groundspeed.errors import UserError

LIMIT = 1 << 20  # bytes of one page: what is larger is none of ours
_NAME = re.compile(
    r"(?P<dtype>[^-]+)-(?P<shape>.+)-(?P<commit>nocommit|[0-9a-f]{7,40})(?P<dirty>-dirty)?-(?P<tool>[a-z0-9]+)"
    + re.escape(SUFFIX)
)
_TAKEN = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d) UTC\b")
_ESCAPED = re.compile(r"\\([\\|*_`])")


@dataclass(frozen=True)
class Profile:
    """One page. ``said`` is the first sentence of what bounds it; ``commit`` is abbreviated, "" outside git."""

    operator: str
    implementation: str
    dtype: str
    shape: str
    commit: str
    dirty: bool
    tool: str
    taken: datetime
    said: str
    path: Path

    @property
    def state(self) -> str:
        """The code that it is of, as its file's name and links write it."""
        return (self.commit or "nocommit") + ("-dirty" if self.dirty else "")

    def is_of(self, commit: str) -> bool:
        """Whether it is of exactly this commit, a full hash."""
        return bool(self.commit) and not self.dirty and commit.startswith(self.commit)


def profiles_of(results: Path, machine: str, operator: str, implementation: str | None = None) -> list[Profile]:
    """Profiles of an implementation, or of every one of an operator, newest first; none where a name is no name."""
    above = _below(results, machine, FOLDER, operator)
    if above is None:
        return []
    names = _listed(above) if implementation is None else [implementation]
    found = [
        profile
        for name in names
        if (folder := _below(above, name)) is not None
        for file in _listed(folder)
        if (profile := _profile(folder / file, operator, name)) is not None
    ]
    return sorted(found, key=lambda one: (-one.taken.timestamp(), one.path.name))


def text_of(profile: Profile) -> str:
    """The page as Markdown. Raises UserError when it is gone, unreadable or too long to be one."""
    try:
        read = _read(profile.path)
    except FileNotFoundError as error:
        raise UserError(f"{profile.path.name} does not exist any more") from error
    except OSError as error:
        raise UserError(f"{profile.path.name} cannot be read: {error.strerror}") from error
    if len(read) > LIMIT:
        raise UserError(f"{profile.path.name} is larger than {LIMIT >> 20} MiB: no page of a profile")
    return read.decode("utf-8", "replace")


def _below(folder: Path, *names: str) -> Path | None:
    """A folder some levels below, each of which is there and itself; None otherwise."""
    for name in names:
        if not name or name.startswith(".") or "/" in name or os.sep in name:
            return None
        folder = folder / name
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
        except (OSError, ValueError):  # not there; or no name that a file can have
            return None
    return folder


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _profile(path: Path, operator: str, implementation: str) -> Profile | None:
    """The profile that a file is by its name; None for anything else, and for what is gone by now."""
    parts = None if path.name.startswith(".") else _NAME.fullmatch(path.name)
    try:
        seen = path.lstat() if parts else None
        if parts is None or seen is None or not stat.S_ISREG(seen.st_mode):
            return None
        taken, said = _head(str(path), seen.st_mtime_ns, seen.st_size)
    except OSError:
        return None
    commit = "" if parts["commit"] == "nocommit" else parts["commit"]
    when = taken or datetime.fromtimestamp(seen.st_mtime, UTC)
    case = parts["dtype"], parts["shape"]
    return Profile(operator, implementation, *case, commit, bool(parts["dirty"]), parts["tool"], when, said, path)


@functools.lru_cache(maxsize=4096)
def _head(path: str, mtime_ns: int, size: int) -> tuple[datetime | None, str]:
    """When a page says that it was taken, and its first sentence. A file that did not change is read once."""
    text = _read(Path(path)).decode("utf-8", "replace") if size <= LIMIT else ""
    first = next((line[2:].strip() for line in text.splitlines() if line.startswith("- ")), "")
    said = html.unescape(_ESCAPED.sub(r"\1", first))
    for moment in reversed(_TAKEN.findall(text)):
        try:
            return datetime.strptime(moment, "%Y-%m-%d %H:%M").replace(tzinfo=UTC), said
        except ValueError:
            continue
    return None, said


def _read(path: Path) -> bytes:
    """At most one byte more than ``LIMIT``. Raises OSError, also for a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read(LIMIT + 1)
