"""A prefix of a bucket, or of whatever else fsspec reaches, as a place of results."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from groundspeed.errors import UserError, first_line
from groundspeed.locations.kinds import NOTES
from groundspeed.locations.place import Bucket, redacted
from groundspeed.locations.shelf import Held

_PIECES = f"{NOTES}.d/"  # what was added to NOTES, an object each: an object cannot be added to
_WRITERS = 8
# Seconds and attempts before a server that does not answer is given up.
_PATIENCE = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 2, "mode": "standard"}}
_FOREIGN = ("botocore", "aiobotocore", "aiohttp", "s3fs", "gcsfs", "adlfs", "fsspec", "google", "azure", "asyncio")


class BucketShelf:
    """New objects are put on the condition that there is none of the name; each is whole or not there at all."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        with told(bucket):
            self._files, self._root = _opened(bucket.url)

    def held(self) -> Mapping[str, Held]:
        return {path: _held(about) for path, about in self._listed().items() if not path.startswith(_PIECES)}

    def read(self, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        names = {self._name(path): path for path in paths}
        if names:
            with told(self._bucket):
                found = self._files.cat(list(names))
            contents = found if isinstance(found, dict) else {next(iter(names)): found}
            yield from ((names[name], payload) for name, payload in contents.items())

    def add(self, files: Mapping[str, Path]) -> set[str]:
        with told(self._bucket), ThreadPoolExecutor(_WRITERS) as pool:
            new = pool.map(lambda path: self._add(path, files[path].read_bytes()), files)
            return {path for path, was_added in zip(files, new, strict=True) if not was_added}

    def replace(self, path: str, payload: bytes) -> None:
        with told(self._bucket):
            self._files.pipe_file(self._name(path), payload)

    def remove(self, paths: Collection[str]) -> None:
        with told(self._bucket):
            if paths:
                self._files.rm([self._name(path) for path in paths])

    def lines(self) -> bytes:
        pieces = sorted(path for path in self._listed(_PIECES) if path.startswith(_PIECES))
        return b"".join(payload for _, payload in sorted(self.read(pieces)))

    def add_lines(self, new: bytes) -> None:
        with told(self._bucket):
            self._add(f"{_PIECES}{hashlib.sha256(new).hexdigest()[:16]}.jsonl", new)

    def is_newer(self, path: str, payload: bytes, modified: float) -> bool:
        with told(self._bucket):
            theirs = _modified(self._files.info(self._name(path)))
        return theirs is None or modified > theirs

    def _listed(self, below: str = "") -> dict[str, dict[str, Any]]:
        with told(self._bucket):
            root = self._name(below).rstrip("/")
            try:
                found = self._files.find(root, detail=True)
            except FileNotFoundError:
                found = {}
            if not found and not below:
                _look_for_bucket(self._files, self._root)
        start = len(self._root) + 1
        return {name[start:]: about for name, about in found.items() if name.startswith(f"{self._root}/")}

    def _add(self, path: str, payload: bytes) -> bool:
        try:
            self._files.pipe_file(self._name(path), payload, mode="create")
        except FileExistsError:
            return False
        return True

    def _name(self, path: str) -> str:
        return f"{self._root}/{path}"


def _opened(url: str) -> tuple[Any, str]:
    import fsspec
    from fsspec.config import conf

    protocol = url.partition("://")[0]
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if protocol in ("s3", "s3a") and "config_kwargs" not in conf.get(protocol, {}):
        options["config_kwargs"] = _PATIENCE
    files, root = fsspec.core.url_to_fs(url, **options)
    if hasattr(files, "retries"):
        files.retries = 1  # of s3fs, around the attempts above: five times them would be minutes
    return files, root.rstrip("/")


def _look_for_bucket(files: Any, root: str) -> None:
    """Raises FileNotFoundError where there is no bucket at all: an empty prefix of one that is there is no fault.

    And whatever a server that cannot be reached raises: fsspec's walk leaves out the folders that it could not list.
    """
    spoken = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
    if set(spoken) & {"s3", "gs"}:
        files.ls(root.partition("/")[0], refresh=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            files.ls(root)


def _held(about: Mapping[str, Any]) -> Held:
    tag = str(about.get("ETag", "")).strip('"')
    plain = len(tag) == 32 and all(letter in "0123456789abcdef" for letter in tag)  # of an upload in parts it is not
    return Held(int(about["size"] or 0), _modified(about), f"md5:{tag}" if plain else "")


def _modified(about: Mapping[str, Any]) -> float | None:
    for name in ("LastModified", "mtime", "updated", "last_modified", "modified", "created"):
        when = about.get(name)
        if isinstance(when, datetime):
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        if isinstance(when, int | float):
            return float(when)
        if isinstance(when, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(when).timestamp()
    return None


@contextlib.contextmanager
def told(bucket: Bucket) -> Iterator[None]:
    """What a bucket's library raises becomes one line, in words and without secrets."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        why = _reason(error)
        if not why:
            raise
        raise UserError(f"{bucket}: {why}") from error


def _reason(error: Exception) -> str:
    """Why it failed; "" for what is no fault of the place, nor of whoever named it."""
    name, module = type(error).__name__, type(error).__module__.partition(".")[0]
    if isinstance(error, ImportError):
        install = f"{sys.executable} -m pip install 'groundspeed[remote]' brings what s3:// needs"
        return f"needs a package that is not installed ({error}); {install}"
    if isinstance(error, PermissionError) or "Credentials" in name or "Forbidden" in name:
        expected = "expected credentials for it, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
        return f"access is refused ({_short(error)}): {expected}"
    if isinstance(error, FileNotFoundError):
        return f"no such bucket ({_short(error)})"
    if "Connect" in name or "Timeout" in name or isinstance(error, ConnectionError | TimeoutError):
        return f"the server does not answer: is it up, and AWS_ENDPOINT_URL right? ({_short(error)})"
    if module in _FOREIGN or isinstance(error, OSError | ValueError):
        return _short(error)
    return ""


def _short(error: Exception) -> str:
    return redacted(first_line(error))[:200]
