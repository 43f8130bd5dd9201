"""asv's result file, versions 1 and 2, taken apart into one form.

Version 2 holds a row of columns a benchmark (``result_columns`` names them, trailing ones left out); version 1 a bare
value or a dict of result, params, stats and samples. Described in asv's documentation under "Developer docs: file
formats"; nothing of asv is imported.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.store.errors import Unreadable

MOST_COMBINATIONS = 1_000_000


@dataclass(frozen=True)
class Benchmark:
    """The results of one benchmark in one file: one value a combination of parameters."""

    name: str
    params: tuple[tuple[str, ...], ...]  # the values of each parameter, as Python reprs
    result: Sequence[Any]
    version: str = ""
    started_at: Any = None
    low: Sequence[Any] | None = None
    high: Sequence[Any] | None = None
    repeat: Sequence[Any] | None = None
    samples: Sequence[Any] | None = None


@dataclass(frozen=True)
class ResultFile:
    """One commit in one environment on one machine."""

    commit: str
    date: Any
    machine: str
    environment: str
    details: dict[str, Any]
    benchmarks: tuple[Benchmark, ...] = field(repr=False)


@dataclass(frozen=True)
class Meaning:
    """What benchmarks.json says of a benchmark."""

    unit: str
    param_names: tuple[str, ...] = ()


def parse(document: Any, stem: str) -> ResultFile:
    """Take a parsed result file apart; ``stem`` is its file name without ".json". Raises Unreadable."""
    if not isinstance(document, dict):
        raise Unreadable("is not a result file: expected an object")
    if "results" not in document or "commit_hash" not in document:
        lacks = [name for name in ("commit_hash", "results") if name not in document]
        raise Unreadable(f"is not a result file of asv or pytest-benchmark: lacks {' and '.join(lacks)}")
    version = document.get("version")
    if version not in (1, 2):
        raise Unreadable(f"asv format {version!r}: versions 1 and 2 can be read")
    results, params = document["results"], document.get("params")
    if not isinstance(results, dict) or not isinstance(params, dict):
        raise Unreadable("results and params must be objects")
    entries = _entries_1(document, results) if version == 1 else _entries_2(document, results)
    return ResultFile(
        commit=str(document["commit_hash"] or ""),
        date=document.get("date"),
        machine=str(params.get("machine") or ""),
        environment=str(document.get("env_name") or stem.partition("-")[2]),
        details={
            "python": document.get("python"),
            **params,
            **{f"requires {name}": value for name, value in _mapping(document.get("requirements")).items()},
            **_mapping(document.get("env_vars")),
        },
        benchmarks=tuple(_benchmark(name, entry) for name, entry in entries),
    )


def _entries_2(document: dict[str, Any], results: dict[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    columns = document.get("result_columns")
    if not (isinstance(columns, list) and all(isinstance(column, str) for column in columns)):
        raise Unreadable("result_columns must be a list of names")
    for name, row in results.items():
        if not isinstance(row, list):
            raise Unreadable(f"{name}: expected a list of columns")
        yield name, dict(zip(columns, row, strict=False))


def _entries_1(document: dict[str, Any], results: dict[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    versions = _mapping(document.get("benchmark_version"))
    started = _mapping(document.get("started_at"))
    for name, value in results.items():
        entry = value if isinstance(value, dict) else {"result": value}
        stats = entry.get("stats")
        stats = stats if isinstance(stats, list) else [stats]
        intervals = [_pair(_mapping(s).get("ci_99")) for s in stats]
        yield (
            name,
            {
                "result": entry.get("result"),
                "params": entry.get("params"),
                "samples": entry.get("samples"),
                "version": versions.get(name),
                "started_at": started.get(name),
                "stats_ci_99_a": [low for low, _ in intervals],
                "stats_ci_99_b": [high for _, high in intervals],
                "stats_repeat": [_mapping(s).get("repeat") for s in stats],
            },
        )


def _benchmark(name: str, entry: Mapping[str, Any]) -> Benchmark:
    params = entry.get("params") or ()
    if not (isinstance(params, (list, tuple)) and all(isinstance(values, list) for values in params)):
        raise Unreadable(f"{name}: params must be a list of lists")
    params = tuple(tuple(map(str, values)) for values in params)
    result = entry.get("result")
    count = math.prod(map(len, params))
    if result is None:  # asv's short form of "all failed"
        if count > MOST_COMBINATIONS:
            raise Unreadable(f"{name}: {count} combinations of parameters, at most {MOST_COMBINATIONS} can be shown")
        result = [None] * count
    elif not isinstance(result, list):
        result = [result]
    return Benchmark(
        name=name,
        params=params,
        result=result[:count],
        version=str(entry.get("version") or ""),
        started_at=entry.get("started_at"),
        low=_list(entry.get("stats_ci_99_a")),
        high=_list(entry.get("stats_ci_99_b")),
        repeat=_list(entry.get("stats_repeat")),
        samples=_list(entry.get("samples")),
    )


def meanings(document: Any) -> dict[str, Meaning]:
    """What a benchmarks.json says of its benchmarks; entries that are no benchmark are passed over."""
    found = {}
    for name, entry in _mapping(document).items():
        if isinstance(entry, dict):
            names = entry.get("param_names")
            named = tuple(map(str, names)) if isinstance(names, list) else ()
            found[name] = Meaning(str(entry.get("unit") or guessed_unit(name)), named)
    return found


_KINDS = (
    (re.compile(r"(time|timeraw)_|Time(raw)?[A-Z_]"), "seconds"),
    (re.compile(r"(peak)?mem_|(Peak)?Mem[A-Z_]"), "bytes"),
)


def guessed_unit(name: str) -> str:
    """The unit that a benchmark's name promises, by asv's naming rules, for one that benchmarks.json no longer has."""
    last = name.rpartition(".")[2]
    return next((unit for pattern, unit in _KINDS if pattern.match(last)), "")


_QUOTED = re.compile(r"^(?:u?'(.+)'|\"(.+)\"|<class '(.+)'>)$", re.DOTALL)


def readable(value: str) -> str:
    """A parameter's repr without its quotes."""
    match = _QUOTED.match(value)
    inner = next((group for group in match.groups() if group), "") if match else ""
    return inner if inner.strip() else value


def combinations(params: tuple[tuple[str, ...], ...], names: tuple[str, ...], count: int) -> list[dict[str, str]]:
    """The parameters of the first ``count`` combinations, in the order of their results, by name and readable value.

    A parameter list in which two values would read the same ('1' and 1) keeps its reprs.
    """
    if len(set(names)) != len(params):
        names = tuple(f"param{i}" for i in range(1, len(params) + 1))
    shown = []
    for values in params:
        short = tuple(map(readable, values))
        shown.append(short if len(set(short)) == len(set(values)) else values)
    return [dict(zip(names, values, strict=True)) for values in itertools.islice(itertools.product(*shown), count)]


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any] | None:
    return value if isinstance(value, list) else None
