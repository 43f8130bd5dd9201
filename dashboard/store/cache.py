"""The columnar cache on disk: an index of what was read, and chunks of rows. Safe to delete at any time.

    results/.cache/store-<version>/index, listed
    results/.cache/store-<version>/<chunk>.measurements.arrow (or, of a sealed one, <chunk>.parquet)
    results/.cache/store-<version>/<chunk>.runs.arrow, <chunk>.newest.arrow

The index is small: which files a chunk holds, and their stamps, stand among its runs.

The version covers the schema and polars. Writing a cache deletes those of older schemas. Where the results folder
cannot be written, a temporary folder serves for the life of the process.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import polars as pl

from dashboard.store import chunks
from dashboard.store.asv_format import Meaning
from dashboard.store.chunks import Chunk
from dashboard.store.files import Entry, Listing
from dashboard.store.schema import SCHEMA_VERSION

INDEX = "index"  # JSON, but not by name: asv takes every *.json below results/ for a result file
LISTED = "listed"  # of years of runs; without it their folders are listed again
_VERSION = re.compile(r"store-(\d+)-.+")
_SPARED_S = 3600.0  # a chunk file nobody knows is deleted when it is older


class Index(msgspec.Struct, frozen=True):
    """Everything the store knew when it was written, but for what the chunks hold themselves."""

    chunks: dict[str, list[str]] = {}  # by name: the files in it whose rows no longer count
    unreadable: dict[str, Entry] = {}  # by path
    benchmarks: dict[str, dict[str, Meaning]] = {}  # by path of benchmarks.json: the meanings that rows were made with
    machines: dict[str, str] = {}  # by path of machine.json: the name that rows were made with


class Cache:
    """Reads and writes one results folder's cache. A damaged or foreign cache is an empty one."""

    def __init__(self, results: Path) -> None:
        self.folder, self._temporary = _folder(results)

    def load(self) -> tuple[Index, dict[str, Chunk]]:
        """The index and every chunk it names that is still there, with the rows that count."""
        try:
            index = msgspec.json.decode((self.folder / INDEX).read_bytes(), type=Index)
        except (OSError, msgspec.DecodeError):
            return Index(), {}
        found = chunks.load(self.folder, index.chunks)
        return index, {name: chunk.without(index.chunks[name]) for name, chunk in found.items()}

    def load_listed(self) -> dict[str, Listing]:
        """The folders of runs that were listed, as ``save_listed`` kept them."""
        try:
            return msgspec.json.decode((self.folder / LISTED).read_bytes(), type=dict[str, Listing])
        except (OSError, msgspec.DecodeError):
            return {}

    def save_listed(self, listed: Mapping[str, Listing]) -> None:
        """Keep which folders of runs were listed. Raises OSError."""
        self._write(LISTED, msgspec.json.encode(listed))

    def _write(self, name: str, payload: bytes) -> None:
        with chunks.replacing(self.folder / name) as temporary:
            temporary.write_bytes(payload)

    def save(self, index: Index, new: list[Chunk], replaced: Collection[str]) -> None:
        """Write new chunks in memory, then the index that names all of them; delete what it has not named for an hour.

        ``replaced`` are the chunks that the index before still named. Raises OSError.
        """
        self.folder.parent.mkdir(exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        for chunk in new:
            chunks.save(self.folder, chunk)
        self._write(INDEX, msgspec.json.encode(index))
        chunks.touch(self.folder, replaced)
        chunks.remove_others(self.folder, index.chunks, time.time() - _SPARED_S)
        if self._temporary is None:
            _remove_older(self.folder.parent)


def _remove_older(caches: Path) -> None:
    """Delete the caches of older schemas. Those of later ones, and of another polars, may be in use beside this one."""
    for folder in caches.iterdir():
        version = _VERSION.fullmatch(folder.name)
        if version and int(version[1]) < SCHEMA_VERSION and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)  # one that cannot be deleted costs its bytes, and no result


def _folder(results: Path) -> tuple[Path, tempfile.TemporaryDirectory[str] | None]:
    version = f"store-{SCHEMA_VERSION}-{pl.__version__}"
    folder = results / ".cache" / version
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = results / ".cache" / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        with tempfile.TemporaryFile(dir=folder):
            return folder, None
    except OSError:
        temporary = tempfile.TemporaryDirectory(prefix="groundspeed-store-")
        return Path(temporary.name), temporary
