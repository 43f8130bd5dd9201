"""pytest-benchmark's JSON as rows: operator = the test, shape = its parameters, ``value`` = the median in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from dashboard.store.errors import Unreadable
from dashboard.store.summaries import Lists
from dashboard.store.table import Table
from dashboard.store.times import milliseconds

_NO_COMMIT = "unversioned"  # what pytest-benchmark writes outside a repository


class _Stats(msgspec.Struct):
    median: float
    rounds: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0
    data: list[float] = []  # samples, where --benchmark-save-data kept them


class _Test(msgspec.Struct):
    name: str
    stats: _Stats
    fullname: str = ""
    params: dict[str, Any] | None = None
    param: str | None = None


class _Commit(msgspec.Struct):
    id: str | None = ""
    time: str | None = ""
    dirty: bool = False


class _Document(msgspec.Struct):
    benchmarks: list[_Test]
    machine_info: dict[str, Any] = {}
    commit_info: _Commit = msgspec.field(default_factory=_Commit)
    datetime: str = ""
    version: str = ""


def is_pytest_benchmark(document: Any) -> bool:
    """Whether a parsed file has the marks of pytest-benchmark's."""
    return isinstance(document, dict) and "benchmarks" in document and "machine_info" in document


def add_pytest(path: str, document: Any, rows: Table, runs: Table) -> None:
    """Append one file of pytest-benchmark. Raises Unreadable, and then has appended nothing."""
    file = _converted(document)
    info = file.machine_info
    python = f"{info.get('python_implementation', 'Python')} {info.get('python_version', '')}".strip()
    started = milliseconds(file.datetime)
    commit = (file.commit_info.id or "").replace(_NO_COMMIT, "")
    shared = {
        "machine": str(info.get("node") or path.rpartition("/")[0]),
        "run_id": f"{commit[:8]} {file.datetime}".strip(),
        "source": path,
        "project": "pytest-benchmark",
        "environment": python,
        "commit": commit,
        "commit_time": milliseconds(file.commit_info.time or ""),
        "started": started,
    }
    tests = file.benchmarks
    facets = [_facets(test) for test in tests]
    labels = [",".join(f"{name}={value}" for name, value in one.items()) for one in facets]
    samples = Lists()
    for test in tests:
        samples.add(test.stats.data)
    interval = samples.summarise()
    rows.add(
        len(tests),
        {**shared, "status": "ok", "unit": "seconds", "direction": "lower"},
        {
            "operator": [_operator(test) for test in tests],
            "shape": labels,
            "case": labels,
            "facets": [json.dumps(one) if one else "" for one in facets],
            "value": [test.stats.median for test in tests],
            "value_low": interval.low,
            "value_high": interval.high,
            "n": [test.stats.rounds for test in tests],
        },
    )
    details = json.dumps({**_plain(info), "pytest-benchmark": file.version})
    runs.add(1, {**shared, "operator": "", "dirty": file.commit_info.dirty, "details": details, "rows": len(tests)})


def _plain(info: Mapping[str, Any]) -> dict[str, Any]:
    """The machine's scalar fields, and of its CPU the name: not the hundred flags."""
    cpu = info.get("cpu")
    brand = cpu.get("brand_raw") if isinstance(cpu, dict) else cpu
    scalars = {name: value for name, value in info.items() if isinstance(value, (str, int, float, bool))}
    return scalars | ({"cpu": str(brand)} if brand else {})


def samples_at(document: Any, operator: str, facets: Mapping[str, str]) -> tuple[list[float], dict[str, Any]] | None:
    """Samples in seconds (none, unless --benchmark-save-data kept them) and the other fields of one test."""
    for position, test in enumerate(_converted(document).benchmarks):
        if _operator(test) == operator and _facets(test) == facets:
            stored = document["benchmarks"][position]
            stats = {name: value for name, value in stored["stats"].items() if name != "data"}
            return test.stats.data, {**stored, "stats": stats}
    return None


def _converted(document: Any) -> _Document:
    try:
        return msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise Unreadable(f"is not a file of pytest-benchmark: {error}") from error


def _operator(test: _Test) -> str:
    return (test.fullname or test.name).partition("[")[0]


def _facets(test: _Test) -> Mapping[str, str]:
    if test.params:
        return {name: str(value) for name, value in test.params.items()}
    return {"param": test.param} if test.param else {}
