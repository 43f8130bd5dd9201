"""pytest-benchmark's JSON as records.

What it times is a call as the host sees it: that is kept as ``call``. A file of our own bridge holds device time with a
cold cache, and says so by the name of its clock. A test is an operator, unless a parameter names one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from groundspeed.analysis.foreign import NotResults, PytestTest, pytest_tests, reason
from groundspeed.importing.names import Named, named, slug, slugs
from groundspeed.importing.whole import TIER, whole
from groundspeed.machine import machine_without_gpu
from groundspeed.records import Environment, Header, Measurement, Record

TOOL = "pytest_benchmark"  # what an implementation is called that no parameter names
BRIDGE = "groundspeed.device_time"  # the clock of groundspeed.pytest_plugin
GPU_TIMERS = ("cupti", "events", "graph")


def read_pytest_benchmark(document: Mapping[str, Any]) -> tuple[Record, ...]:
    """One record an operator. Their headers' machine is empty where the file does not say on what it was measured.

    Raises NotResults, without the file's name.
    """
    try:
        tests = list(pytest_tests(document))
        header = _header(document, tests)
        return tuple(whole(header, operator, rows) for operator, rows in _by_operator(tests).items())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, NotResults):
            raise
        raise NotResults(f"is no whole file of pytest-benchmark: {reason(error)}") from error


def _by_operator(tests: list[PytestTest]) -> dict[str, list[Measurement]]:
    names = slugs((test.name for test in tests), short=lambda name: name.rpartition("::")[2])
    found: dict[str, list[Measurement]] = {}
    for test in tests:
        of = _named(test)
        found.setdefault(slug(of.operator) if of.operator else names[test.name], []).append(_measurement(test, of))
    return found


def _named(test: PytestTest) -> Named:
    """By its parameters, of which our bridge's ``case`` is a dtype and a shape: ``float32 M=4096,N=1024``."""
    parameters = dict(test.params)
    if test.timer == BRIDGE and "case" in parameters:
        dtype, _, shape = str(parameters.pop("case")).partition(" ")
        parts = (part.partition("=") for part in shape.split(",") if part)
        parameters |= {"dtype": dtype, **{name: value for name, _, value in parts}}
    return named(parameters)


def _measurement(test: PytestTest, of: Named) -> Measurement:
    return Measurement(
        implementation=of.implementation or TOOL,
        dtype=of.dtype,
        shape=of.shape,
        status="ok",
        case_digest=str(test.extra.get("case_digest") or ""),
        implementation_digest=str(test.extra.get("implementation_digest") or ""),
        unstable=_doubt(test),
        timer=str(test.extra.get("timer") or TOOL) if test.timer == BRIDGE else TOOL,
        samples={"device_cold" if test.timer == BRIDGE else "call": [x * 1e9 for x in _seconds(test)]},
        notes=list(_notes(test)),
    )


def _seconds(test: PytestTest) -> tuple[float, ...]:
    return test.seconds or (test.median,)


def _doubt(test: PytestTest) -> str:
    if not test.seconds:
        return f"the file has the median of {test.rounds} rounds alone, so no interval: --benchmark-save-data keeps all"
    return str(test.extra.get("unstable") or "")


def _notes(test: PytestTest) -> Iterator[str]:
    yield f"imported from pytest-benchmark: {test.name}"
    if test.iterations > 1:
        yield f"each sample is the mean of {test.iterations} calls"


def _header(document: Mapping[str, Any], tests: list[PytestTest]) -> Header:
    info, commit = document["machine_info"], document.get("commit_info") or {}
    cpu = info.get("cpu") or {}
    brand = str(cpu.get("brand_raw") or "") if isinstance(cpu, dict) else str(cpu)
    count = cpu.get("count") if isinstance(cpu, dict) else None
    on_gpu = any(test.timer == BRIDGE and test.extra.get("timer") in GPU_TIMERS for test in tests)
    environment = Environment(
        device="cuda" if on_gpu else "cpu",
        device_name="" if on_gpu else brand,
        python=str(info.get("python_version") or ""),
        os=f"{info.get('system') or ''} {info.get('release') or ''}".strip(),
        cpu=brand,
        threads=count if isinstance(count, int) else 0,
    )
    commit_id = str(commit.get("id") or "")  # "unversioned" or "unknown" where there is none
    return Header(
        run_id="",
        operator="",
        machine="" if on_gpu or not brand else machine_without_gpu(brand),
        started=_utc(str(document.get("datetime") or "")),
        environment=environment,
        commit=commit_id if re.fullmatch("[0-9a-f]{7,64}", commit_id) else "",
        commit_time=str(commit.get("time") or ""),
        dirty=bool(commit.get("dirty")),
        tier=TIER,
    )


def _utc(text: str) -> str:
    """ISO 8601 in UTC; pytest-benchmark writes an offset since 3.0, and UTC before."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        found = f"expected a time in ISO 8601, got {text!r}"
        raise NotResults(f"is no whole file of pytest-benchmark: datetime: {found}") from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
