"""Any damage to any field of a file: the file is shown or named, never more than that."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.store.errors import Unreadable
from dashboard.store.ingest import Described, read_file
from dashboard.store.schema import MEASUREMENTS, RUNS
from dashboard.store.table import Table
from groundspeed.records import Footer
from tests.store import make
from tests.store.test_store_pytest_benchmark import DOCUMENT

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["NaN", "\ud800", "2026-01-01", "'a'", "9999-99-99", "0001-01-01T00:00:00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ASV = {
    "commit_hash": make.COMMIT,
    "env_name": "py",
    "date": 1_760_000_000_000,
    "params": {"machine": "box", "os": "Linux"},
    "python": "3.12",
    "requirements": {"numpy": ""},
    "env_vars": {},
    "result_columns": make.COLUMNS,
    "results": {
        "time_x": [[1.0, None], [["1", "2"]], "v", 5, 1.0, [0.9, None], [1.1, None], None, None, [1], [5, 6], [[1.0]]],
        "time_y": [[2.0], []],
    },
    "version": 2,
}
ASV_1 = {
    **ASV,
    "version": 1,
    "results": {
        "time_x": 1.0,
        "time_y": {"result": [1, 2], "params": [["1", "2"]], "stats": [{"ci_99": [1, 2]}, None]},
    },
}


def _paths(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [at, *(path for key, value in inner for path in _paths(value, (*at, key)))]


def _replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


def _shown_or_named(path: str, payload: bytes) -> None:
    rows, runs = Table(MEASUREMENTS), Table(RUNS)
    try:
        read_file(path, payload, Described({}, {}, {}), rows, runs)
    except Unreadable as error:
        assert "\n" not in str(error).strip()
        assert rows.rows == runs.rows == 0
    else:
        assert runs.rows == 1
    assert rows.frame().height == rows.rows
    assert runs.frame().height == runs.rows


relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("document", [ASV, ASV_1, DOCUMENT], ids=["asv 2", "asv 1", "pytest-benchmark"])
@relaxed
@given(data=st.data())
def test_json(document: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_paths(document)))
    changed = _replaced(document, path, data.draw(JSON))
    _shown_or_named("box/x.json", json.dumps(changed).encode())


@pytest.mark.parametrize("name", ["flops", "bytes_read", "bytes_written", "items", "peak_memory_bytes", "energy_nj"])
@pytest.mark.parametrize("value", [10**400, -1, 10**25, float("nan")])
def test_record_with_a_number_out_of_any_range(name: str, value: float) -> None:
    lines = [msgspec.to_builtins(part) for part in (make.header(), make.measurement(), Footer(1))]
    lines[1][name] = value
    payload = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    _shown_or_named("box/records/r/softmax.jsonl.gz", payload)


@pytest.mark.parametrize("value", [10**400, -1, 10**25, 2.5])
def test_pytest_benchmark_with_rounds_out_of_any_range(value: float) -> None:
    changed = _replaced(DOCUMENT, ("benchmarks", 0, "stats", "rounds"), value)
    _shown_or_named("box/x.json", json.dumps(changed).encode())


@pytest.mark.parametrize("value", [10**25, -3, 2.5, True])
def test_asv_with_repeats_out_of_any_range(value: float) -> None:
    _shown_or_named("box/x.json", json.dumps(_replaced(ASV, ("results", "time_x", 10, 0), value)).encode())


@relaxed
@given(data=st.data())
def test_record(data: st.DataObject) -> None:
    lines = [
        msgspec.to_builtins(part)
        for part in (make.header(), make.measurement(), make.measurement("triton_row", status="skipped"), Footer(2))
    ]
    path = data.draw(st.sampled_from(_paths(lines)[1:]))
    changed = _replaced(lines, path, data.draw(JSON))
    payload = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in changed))
    _shown_or_named("box/records/r/softmax.jsonl.gz", payload)


@relaxed
@given(cut=st.integers(0, 2000), noise=st.binary(max_size=8))
def test_bytes(cut: int, noise: bytes) -> None:
    text = json.dumps(ASV).encode()
    _shown_or_named("box/x.json", text[:cut] + noise + text[cut:])
    _shown_or_named("box/x.json", text[:cut] + noise)
    packed = gzip.compress(text)
    _shown_or_named("box/records/r/softmax.jsonl.gz", packed[:cut] + noise + packed[cut + 1 :])
