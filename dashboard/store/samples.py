"""The samples behind one row, read from its one file when a reader asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from dashboard.store import read_asv, read_pytest
from dashboard.store.asv_format import parse
from dashboard.store.errors import Unreadable
from dashboard.store.files import RECORD_SUFFIX
from dashboard.store.ingest import read_json
from groundspeed.errors import UserError
from groundspeed.records import RecordError, read_record

_NS = 1e-9


@dataclass(frozen=True)
class Samples:
    """Samples of one measurement in the base unit (seconds, or the row's unit), by quantity; the rest of it, raw."""

    quantities: dict[str, list[float]]
    measurement: dict[str, Any] = field(default_factory=dict)  # every stored field but the samples
    run: dict[str, Any] = field(default_factory=dict)  # the file's header: environment, command, ceilings


def samples_of(results: Path, row: Mapping[str, Any]) -> Samples:
    """Samples of one row of ``measurements`` (a dict of it), from the file that it came from.

    Raises groundspeed.errors.UserError when the file is gone, unreadable, outside the results folder or without it.
    """
    source = str(row["source"])
    if PurePosixPath(source).is_absolute() or ".." in PurePosixPath(source).parts:
        raise UserError(f"{source}: is outside the results folder")
    read = _of_record if source.endswith(RECORD_SUFFIX) else _of_json
    try:
        found = read(results / source, row)
    except (Unreadable, RecordError) as error:
        raise UserError(f"{source}: {error}") from error
    if found is None:
        raise UserError(f"{source}: no longer holds {row['operator']} {row['implementation']} {row['case']}")
    return found


def _of_record(path: Path, row: Mapping[str, Any]) -> Samples | None:
    record = read_record(path)
    wanted = (row["implementation"], row["dtype"], row["shape"])
    for each in record.measurements:
        if (each.implementation, each.dtype, each.shape_label) == wanted:
            quantities = {name: [value * _NS for value in values] for name, values in each.samples.items()}
            fields = msgspec.to_builtins(each)
            fields.pop("samples", None)
            return Samples(quantities, fields, msgspec.to_builtins(record.header))
    return None


def _of_json(path: Path, row: Mapping[str, Any]) -> Samples | None:
    document = read_json(path)
    operator, facets = row["operator"], json.loads(row["facets"] or "{}")
    if row["project"] == "pytest-benchmark":
        found = read_pytest.samples_at(document, operator, facets)
        run = {name: value for name, value in _fields(document) if name != "benchmarks"}
    else:
        found = read_asv.samples_at(parse(document, path.stem), operator, facets)
        run = {name: value for name, value in _fields(document) if name not in ("results", "result_columns")}
    if found is None:
        return None
    samples, measurement = found
    return Samples({"value": samples} if samples else {}, measurement, run)


def _fields(document: Any) -> Iterable[tuple[str, Any]]:
    return document.items() if isinstance(document, dict) else ()
