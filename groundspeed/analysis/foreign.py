"""Results that other programs wrote: asv's JSON (versions 1 and 2) and pytest-benchmark's.

asv writes null for a failed benchmark and NaN, which is no JSON, for a skipped one; Python's parser knows both.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from groundspeed.analysis.stored import SeriesId, Stored, StoredRun, timed

UNITS = {"time": "seconds", "timeraw": "seconds", "mem": "bytes", "peakmem": "bytes"}


class NotResults(ValueError):
    """A file that is no result file of a known format: says which file and why."""


class _Stats(msgspec.Struct):
    median: float
    data: list[float] | None = None
    rounds: int | None = None
    iterations: int | None = None


class _Test(msgspec.Struct):
    name: str
    stats: _Stats
    fullname: str | None = None
    params: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    extra_info: dict[str, Any] | None = None


class _File(msgspec.Struct):
    """What is read of a pytest-benchmark file."""

    machine_info: dict[str, Any]
    benchmarks: list[_Test]
    commit_info: dict[str, Any] | None = None


@dataclass(frozen=True)
class PytestTest:
    """One test of a pytest-benchmark file.

    name
        With its file, without its parameters.
    seconds
        Of each round, where ``--benchmark-save-data`` kept them; else empty.
    median
        Of the rounds, in seconds.
    iterations
        Calls a round, over which each of ``seconds`` is a mean.
    timer, extra
        What timed it, by name, and what the test kept beside the statistics.
    """

    name: str
    params: Mapping[str, Any]
    seconds: tuple[float, ...]
    median: float
    rounds: int = 0
    iterations: int = 1
    timer: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_object(path: Path) -> Mapping[str, Any]:
    """The object that a JSON file holds. Raises NotResults, or OSError when it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise NotResults(f"{path}: is no JSON: {where}: {error.msg}; expected a file of results") from error
    except UnicodeDecodeError as error:
        raise NotResults(f"{path}: is no JSON: byte {error.start} is no text; expected a file of results") from error
    except ValueError as error:
        raise NotResults(f"{path}: is no JSON that can be read: {error}; expected a file of results") from error
    except RecursionError as error:
        raise NotResults(f"{path}: is nested too deeply; expected a file of results") from error
    if not isinstance(document, dict):
        raise NotResults(f"{path}: holds {_kind(document)}, expected an object")
    return document


def check_whole(document: Mapping[str, Any], kind: type, program: str) -> None:
    """Raises NotResults saying what was expected, what was found and where, unless a program's document is like this.

    kind
        A msgspec struct of the fields that are read.
    """
    try:
        msgspec.convert(document, kind, strict=False)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        said = said[:1].lower() + said[1:]
        place = where.strip("`").removeprefix("$.")
        text = f"{place}: {said}" if place else said
        raise NotResults(f"is no whole file of {program}: {text.replace('`', chr(39))}") from error


def reason(error: Exception) -> str:
    """What is wrong with a file of which reading it raised this."""
    if isinstance(error, KeyError):
        return f"expected a field {error.args[0]!r}, and there is none"
    if isinstance(error, ValueError):
        return str(error)
    return "a value in it is of another type than its format has there"


def _kind(value: object) -> str:
    """JSON's own word for what a value is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "a number"


def is_pytest_benchmark(document: Mapping[str, Any]) -> bool:
    return "machine_info" in document and "benchmarks" in document


def is_asv(document: Mapping[str, Any]) -> bool:
    return "commit_hash" in document and "results" in document


def pytest_tests(document: Mapping[str, Any]) -> Iterator[PytestTest]:
    """The tests of a pytest-benchmark file. Raises KeyError, TypeError, AttributeError or ValueError for another."""
    check_whole(document, _File, "pytest-benchmark")
    for test in document["benchmarks"]:
        stats = test["stats"]
        yield PytestTest(
            name=str(test.get("fullname") or test["name"]).partition("[")[0],
            params=test.get("params") or ({"param": test["param"]} if test.get("param") else {}),
            seconds=tuple(map(float, stats.get("data") or ())),
            median=float(stats["median"]),
            rounds=int(stats.get("rounds") or 0),
            iterations=int(stats.get("iterations") or 1),
            timer=str((test.get("options") or {}).get("timer") or ""),
            extra=test.get("extra_info") or {},
        )


def read_foreign(path: Path) -> list[Stored]:
    """Everything in one JSON file of asv or pytest-benchmark. Raises NotResults, or OSError when it cannot be read."""
    document = read_object(path)
    try:
        if is_pytest_benchmark(document):
            return list(_pytest_benchmark(document))
        if is_asv(document):
            names = _parameter_names(path)
            return list(_asv(document, names))
    except NotResults as error:
        raise NotResults(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotResults(f"{path}: not as its format has it: {reason(error)}") from error
    raise NotResults(f"{path}: is no result file of asv or pytest-benchmark")


def _parameter_names(path: Path) -> Mapping[str, Sequence[str]]:
    """Names of parameters from the benchmarks.json one folder up, which asv keeps beside the machines."""
    listing = path.parent.parent / "benchmarks.json"
    if not listing.is_file():
        return {}
    try:
        known = json.loads(listing.read_bytes())
    except ValueError:
        return {}  # names only make labels readable: without them parameters are numbered
    return {name: entry.get("param_names", []) for name, entry in known.items() if isinstance(entry, dict)}


def _asv(document: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> Iterator[Stored]:
    params = document.get("params") or {}
    requirements = document.get("requirements") or {}
    environment = {**{k: v for k, v in params.items() if k != "machine"}, **requirements}
    kept = tuple(sorted((str(key), str(value)) for key, value in environment.items() if value not in (None, "")))
    columns = document.get("result_columns") or []
    for name, row in document["results"].items():
        entry = dict(zip(columns, row, strict=False)) if isinstance(row, list) and columns else _version_1(row)
        version = str(entry.get("version") or (document.get("benchmark_version") or {}).get(name, ""))
        run = StoredRun(document["commit_hash"][:12], document["commit_hash"], params.get("machine", ""), kept, version)
        yield from _asv_benchmark(name, entry, names.get(name, ()), run)


def _version_1(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        return {"result": [row]}
    stats = row.get("stats") or []
    intervals = [(each or {}).get("ci_99") or (None, None) for each in stats]
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    return {**row, "stats_ci_99_a": lows, "stats_ci_99_b": highs}


def _asv_benchmark(name: str, entry: Mapping[str, Any], names: Sequence[str], run: StoredRun) -> Iterator[Stored]:
    values = [list(map(str, value)) for value in entry.get("params") or []]
    combinations = list(itertools.product(*values))
    result = entry.get("result")
    results = result if isinstance(result, list) else [result] * len(combinations)
    if len(names) != len(values):
        names = [f"param{i + 1}" for i in range(len(values))]
    kind = name.rpartition(".")[2].partition("_")[0].lower()
    for i, (combination, value) in enumerate(zip(combinations, results, strict=False)):
        label = ",".join(f"{key}={item.strip(chr(39))}" for key, item in zip(names, combination, strict=True))
        series = SeriesId(name, "", "", label, UNITS.get(kind, "value"))
        unit = UNITS.get(kind, "")
        samples = tuple(x for x in _at(entry.get("samples"), i) or () if isinstance(x, int | float))
        if value is None or not math.isfinite(value):
            status = "skipped" if value is not None else "failed"
            yield Stored(series, run, unit, status, "asv stored NaN" if status == "skipped" else "asv stored null")
        elif samples:
            yield timed(series, run, unit, samples)
        else:
            low, high = (_at(entry.get(column), i) for column in ("stats_ci_99_a", "stats_ci_99_b"))
            yield Stored(series, run, unit, value=float(value), low=_number(low), high=_number(high))


def _pytest_benchmark(document: Mapping[str, Any]) -> Iterator[Stored]:
    info, commit = document["machine_info"], document.get("commit_info") or {}
    cpu = info.get("cpu") or {}
    known = {"python": info.get("python_version"), "cpu": cpu.get("brand_raw") if isinstance(cpu, dict) else cpu}
    kept = tuple(sorted((key, str(value)) for key, value in known.items() if value))
    run = StoredRun(str(document.get("datetime", "")), str(commit.get("id") or ""), str(info.get("node", "")), kept)
    for test in pytest_tests(document):
        label = ",".join(f"{key}={value}" for key, value in test.params.items())
        series = SeriesId(test.name, "", "", label, "seconds")
        if test.seconds:
            yield timed(series, run, "seconds", test.seconds)
        else:
            yield Stored(series, run, "seconds", value=test.median)


def _at(column: Any, index: int) -> Any:
    return column[index] if isinstance(column, list) and index < len(column) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
