"""Files in, rows out: reads a list of result files in this process. What cannot be read becomes its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dashboard.store.asv_format import Meaning, meanings, parse
from dashboard.store.errors import Unreadable
from dashboard.store.files import BENCHMARKS, LIMIT, MACHINE, RECORD_SUFFIX, nearest
from dashboard.store.lenient_json import loads
from dashboard.store.read_asv import add_asv, forget_labels
from dashboard.store.read_pytest import add_pytest, is_pytest_benchmark
from dashboard.store.read_records import add_record
from dashboard.store.schema import MEASUREMENTS, RUNS
from dashboard.store.table import Table


@dataclass(frozen=True)
class Described:
    """What the benchmarks.json and machine.json files of a results folder say, by path."""

    benchmarks: dict[str, dict[str, Meaning]]
    machines: dict[str, dict[str, object]]
    problems: dict[str, str]


@dataclass(frozen=True)
class Batch:
    """Rows of the files that could be read, reasons for the others."""

    measurements: pl.DataFrame
    runs: pl.DataFrame
    problems: dict[str, str]


def read_described(results: Path, paths: Iterable[str]) -> Described:
    """Read benchmarks.json and machine.json files, each of which is small."""
    described = Described({}, {}, {})
    for path in paths:
        try:
            document = read_json(results / path)
            if path.rpartition("/")[2] == BENCHMARKS:
                described.benchmarks[path] = meanings(document)
            elif isinstance(document, dict) and isinstance(document.get("machine"), str):
                described.machines[path] = document
            else:
                raise Unreadable("names no machine: the folder's files are shown under their own")
        except Unreadable as error:
            described.problems[path] = str(error)
    return described


class Reader:
    """Reads result files of any kind one after the other, and keeps their rows."""

    def __init__(self, results: Path, described: Described) -> None:
        self._results = results
        self._described = described
        self._measurements, self._runs = Table(MEASUREMENTS), Table(RUNS)
        self._problems = dict[str, str]()

    @property
    def rows(self) -> int:
        """How many measurements it holds."""
        return self._measurements.rows

    def read(self, path: str) -> None:
        """Add one file; what cannot be read becomes a problem."""
        try:
            read_file(path, _read(self._results / path), self._described, self._measurements, self._runs)
        except Unreadable as error:
            self._problems[path] = str(error)

    def batch(self) -> Batch:
        """What was read."""
        forget_labels()
        return Batch(self._measurements.frame(), self._runs.frame(), self._problems)


def read_file(path: str, payload: bytes, described: Described, rows: Table, runs: Table) -> None:
    """Append one result file, given its bytes. Raises Unreadable."""
    if path.endswith(RECORD_SUFFIX):
        add_record(path, payload, rows, runs)
        return
    document = _json(payload)
    if is_pytest_benchmark(document):
        add_pytest(path, document, rows, runs)
        return
    file = parse(document, path.rpartition("/")[2].removesuffix(".json"))
    above = nearest(path, BENCHMARKS, described.benchmarks)
    beside = path.rpartition("/")[0] + f"/{MACHINE}"
    machine = described.machines.get(beside.removeprefix("/"), {}).get("machine", "")
    add_asv(path, file, described.benchmarks[above] if above else {}, str(machine), rows, runs)


def read_json(path: Path) -> object:
    """A whole JSON file. Raises Unreadable."""
    return _json(_read(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            payload = file.read(LIMIT + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    if len(payload) > LIMIT:
        raise Unreadable(f"is larger than {LIMIT >> 20} MiB")
    return payload


def _json(payload: bytes) -> object:
    try:
        return loads(payload)
    except ValueError as error:
        raise Unreadable(f"is not whole JSON: {error}") from error
