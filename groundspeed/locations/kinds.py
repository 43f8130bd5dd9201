"""What a results folder holds, by how two versions of one file become one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from groundspeed.records import SUFFIX, RecordError, read_record

NOTES = "triage.jsonl"
_ASV_COLUMNS = "result_columns"
_DESCRIBED = ("benchmarks.json", "machine.json")


class Kind(Enum):
    """RECORD is never rewritten; LINES are all kept; ASV keeps of each benchmark what was measured last; of OTHER
    files the newer one counts."""

    RECORD = "record"
    LINES = "lines"
    ASV = "asv"
    OTHER = "other"


def kind_of(path: str) -> Kind:
    """By a path relative to the results folder."""
    parts = path.split("/")
    if len(parts) == 4 and parts[1] == "records" and path.endswith(SUFFIX):
        return Kind.RECORD
    if path == NOTES:
        return Kind.LINES
    return Kind.ASV if len(parts) == 2 and path.endswith(".json") and parts[1] not in _DESCRIBED else Kind.OTHER


def travelling(results: Path) -> Iterator[str]:
    """The files of a results folder that other places may have, relative to it: neither hidden ones nor links."""
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(results / folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path


def fault_of(path: Path) -> str:
    """Why a file is no whole record of the name that it has; "" when it is one."""
    try:
        record = read_record(path)
    except RecordError as error:
        return str(error).removeprefix(f"{path}: ")
    operator = path.name.removesuffix(SUFFIX)
    if (record.header.run_id, record.header.operator) != (path.parent.name, operator):
        return f"is, by its header, {record.header.operator} of run {record.header.run_id}"
    return ""


def together(kind: Kind, mine: bytes, theirs: bytes, mine_is_newer: bool) -> bytes:
    """What two versions of one file, neither of them a record, come to."""
    if kind is Kind.LINES:
        return union(theirs, mine)
    if kind is Kind.ASV:
        merged = _asv(mine, theirs)
        if merged is not None:
            return merged
    return mine if mine_is_newer else theirs


def union(first: bytes, second: bytes) -> bytes:
    """The lines of both, each once, those of ``first`` before those that ``second`` adds."""
    lines = dict.fromkeys(line for text in (first, second) for line in text.splitlines() if line.strip())
    return b"".join(line + b"\n" for line in lines)


def _asv(mine: bytes, theirs: bytes) -> bytes | None:
    """Of asv's two results of one commit each benchmark as it was measured last; None where they are no such files."""
    documents = [_asv_document(text) for text in (theirs, mine)]
    older, newer = documents
    if older is None or newer is None or older[_ASV_COLUMNS] != newer[_ASV_COLUMNS]:
        return None
    at = newer[_ASV_COLUMNS].index("started_at")
    results = dict(older["results"])
    for name, row in newer["results"].items():
        if name not in results or _started(row, at) > _started(results[name], at):
            results[name] = row
    if results == older["results"]:
        return theirs
    return mine if results == newer["results"] else json.dumps({**older, **newer, "results": results}).encode()


def _asv_document(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)  # the standard library's: asv writes NaN
    except ValueError:
        return None
    columns = document.get(_ASV_COLUMNS) if isinstance(document, dict) else None
    whole = isinstance(columns, list) and "started_at" in columns and isinstance(document.get("results"), dict)
    return document if whole else None


def _started(row: list[object], at: int) -> float:
    started = row[at] if at < len(row) else None
    return float(started) if isinstance(started, int | float) else 0.0
