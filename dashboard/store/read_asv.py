"""asv's result files as rows: operator = the benchmark's name, shape = its parameters, one ``value``."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.store.asv_format import Benchmark, Meaning, ResultFile, combinations, guessed_unit
from dashboard.store.errors import Unreadable
from dashboard.store.table import Table
from dashboard.store.times import javascript_time

Meanings = Mapping[str, Meaning]
_LARGEST = float(np.finfo(np.float64).max)


def add_asv(path: str, file: ResultFile, known: Meanings, machine: str, rows: Table, runs: Table) -> None:
    """Append one asv result file. Raises Unreadable, and then has appended nothing.

    ``machine`` is what machine.json beside it says, "" without one; asv leaves out a file of another machine, and so
    does the store, with the reason.
    """
    if machine and file.machine and machine != file.machine:
        raise Unreadable(f"names machine {file.machine!r}, machine.json beside it {machine!r}")
    date = javascript_time(file.date)
    started = [t for b in file.benchmarks if (t := javascript_time(b.started_at)) is not None]
    shared = {
        "machine": machine or file.machine or path.rpartition("/")[0],
        "run_id": f"{file.commit[:8]} {file.environment}",
        "source": path,
        "project": "asv",
        "environment": file.environment,
        "commit": file.commit,
        "commit_time": date,
        "started": min(started, default=date),
    }
    blocks = [_block(benchmark, known.get(benchmark.name), shared) for benchmark in file.benchmarks]
    for count, common, own in blocks:
        rows.add(count, common, own)
    total = sum(count for count, _, _ in blocks)
    details = json.dumps(file.details, default=str)
    runs.add(1, {**shared, "operator": "", "details": details, "rows": total})


def _block(
    benchmark: Benchmark, meaning: Meaning | None, shared: Mapping[str, Any]
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Row count, shared and own columns of one benchmark."""
    result = benchmark.result
    names = meaning.param_names if meaning else ()
    labels, facets = _labels(benchmark.params, names, len(result))
    values, status, reason = _values(benchmark.name, result)
    started = javascript_time(benchmark.started_at)
    common = {
        **shared,
        "started": shared["started"] if started is None else started,
        "operator": benchmark.name,
        "case_digest": benchmark.version,
        "unit": meaning.unit if meaning else guessed_unit(benchmark.name),
        "direction": "lower",  # asv calls every rise a regression
    }
    own: dict[str, Any] = {"shape": labels, "case": labels, "facets": facets, "value": values}
    for name, column in (("value_low", benchmark.low), ("value_high", benchmark.high), ("n", benchmark.repeat)):
        if column is not None and len(column) >= len(result):
            own[name] = _finite(column[: len(result)])
    if reason is None:
        common["status"] = "ok"
    else:
        own |= {"status": status, "reason": reason, "failure": ["error" if s == "failed" else "" for s in status]}
    return len(result), common, own


@functools.cache
def _labels(
    params: tuple[tuple[str, ...], ...], names: tuple[str, ...], count: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every combination for reading, and as JSON: the same in every file of a history, so made once."""
    each = combinations(params, names, count)
    return (
        tuple(",".join(f"{name}={value}" for name, value in one.items()) for one in each),
        tuple(json.dumps(one) if one else "" for one in each),
    )


def forget_labels() -> None:
    """Drop the labels kept between files: a lot of files shares them, a server need not hold them."""
    _labels.cache_clear()


def _values(name: str, result: Sequence[Any]) -> tuple[npt.NDArray[np.float64], list[str], list[str] | None]:
    """Values with NaN where there is none, and status and reason by row; reasons None when every value is good.

    In asv's files null is a failure and NaN a benchmark that skipped itself.
    """
    for value in result:
        if not (value is None or isinstance(value, (int, float))):
            raise Unreadable(f"{name}: expected numbers, got {type(value).__name__}")
    try:
        values = np.array(result, np.float64)
    except OverflowError as error:
        raise Unreadable(f"{name}: a whole number too large for any measurement") from error
    if np.isfinite(values).all():
        return values, [], None
    verdicts = [_verdict(value) for value in result]
    values[~np.isfinite(values)] = np.nan
    return values, [status for status, _ in verdicts], [reason for _, reason in verdicts]


def _verdict(value: float | None) -> tuple[str, str]:
    if value is None:
        return "failed", "asv stored null: the benchmark failed, or its build did"
    if value != value:
        return "skipped", "asv stored NaN: the benchmark skipped itself"
    if value in (np.inf, -np.inf):
        return "failed", f"asv stored {value}"
    return "ok", ""


def _finite(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Numbers, NaN for whatever is none: an interval that is unknown or without end."""
    return np.array([value if _is_finite(value) else np.nan for value in values], np.float64)


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and -_LARGEST <= value <= _LARGEST


def samples_at(file: ResultFile, operator: str, facets: Mapping[str, str]) -> tuple[list[float], dict[str, Any]] | None:
    """Samples and other columns of one combination of one benchmark, in its unit; None where the file has it not.

    A file of ``asv run`` without ``--record-samples`` holds none: the list is empty.
    """
    benchmark = next((each for each in file.benchmarks if each.name == operator), None)
    if benchmark is None:
        return None
    each = combinations(benchmark.params, tuple(facets), len(benchmark.result))
    if facets not in each:
        return None
    at = each.index(dict(facets))
    kept = _at(benchmark.samples, at)
    samples = [float(value) for value in kept if _is_finite(value)] if isinstance(kept, list) else []
    columns = {"result": benchmark.result, "ci_99_low": benchmark.low, "ci_99_high": benchmark.high}
    others = {name: _at(column, at) for name, column in (*columns.items(), ("repeat", benchmark.repeat))}
    return samples, {**others, "version": benchmark.version, "started_at": benchmark.started_at}


def _at(column: Sequence[Any] | None, index: int) -> Any:
    return column[index] if column is not None and index < len(column) else None
