"""From a record to asv's values: by the names of the parameters, with the states told apart."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest

from groundspeed import asv_suite
from groundspeed.asv_replay import reply
from groundspeed.asv_sweep import Swept
from groundspeed.records import Environment, FirstCall, Footer, Header, Measurement, Record, write_record

HEADER = Header(
    run_id="run",
    operator="softmax",
    machine="cpu-x",
    started="2026-01-01T00:00:00+00:00",
    environment=Environment(device="cpu", device_name="x", python="3.12", os="Linux"),
)


def ok(implementation: str, dtype: str, n: int, nanoseconds: float) -> Measurement:
    samples = {"device_cold": [nanoseconds, 2 * nanoseconds, 3 * nanoseconds]}
    return Measurement(implementation, dtype, {"N": n}, "ok", samples=samples, prepare_ns=5.0, first_run_ns=7.0)


def swept(tmp_path: Path, *measurements: Measurement) -> Swept:
    path = tmp_path / f"{random.random()}.jsonl.gz"
    write_record(path, Record(HEADER, measurements, Footer(len(measurements))))
    return Swept(str(path))


def cold(measurement: Measurement) -> object:
    return asv_suite.samples(measurement, "device_cold")


def test_a_combination_is_found_by_its_values_in_whatever_order_the_record_is(tmp_path: Path) -> None:
    entries = {
        (name, dtype, f"N={n}"): ok(name, dtype, n, 1000.0 * (1 + i))
        for i, (name, dtype, n) in enumerate(
            (name, dtype, n)
            for name in ("torch_eager", "triton_row")
            for dtype in ("float32", "float16")
            for n in (1, 64)
        )
    }
    order = list(entries.values())
    for seed in range(5):
        random.Random(seed).shuffle(order)
        source = swept(tmp_path, *order)
        for key, measurement in entries.items():
            value = reply(source, key, cold).value
            assert value == {"samples": [1e-9 * x for x in measurement.samples["device_cold"]], "number": 1}


def test_a_failure_is_none_with_its_reason(tmp_path: Path) -> None:
    source = swept(tmp_path, Measurement("a_b", "float32", {"N": 1}, "failed", failure="oom", reason="needs 3 GiB"))
    answer = reply(source, ("a_b", "float32", "N=1"), cold)
    assert answer.value is None
    assert answer.applicable
    assert answer.reason == "oom: needs 3 GiB"


@pytest.mark.parametrize(
    "source",
    [
        (Measurement("a_b", "float32", {"N": 1}, "skipped", reason="no GPU"),),
        (Measurement("a_b", "float32", {"N": 2}, "ok", samples={"device_cold": [1.0]}),),  # another shape
        (Measurement("a_b", "float32", {"N": 1}, "ok", samples={"call": [1.0]}),),  # another question
        (),
    ],
)
def test_skipped_left_out_or_not_asked_is_not_applicable(tmp_path: Path, source: tuple[Measurement, ...]) -> None:
    answer = reply(swept(tmp_path, *source), ("a_b", "float32", "N=1"), cold)
    assert not answer.applicable
    assert isinstance(answer.value, float)
    assert math.isnan(answer.value)


def test_nothing_to_measure_and_a_fault_are_told_apart() -> None:
    key = ("a_b", "float32", "N=1")
    assert not reply(Swept(None, "left out"), key, cold).applicable
    fault = reply(Swept(None, "the disk is full", failed=True), key, cold)
    assert (fault.value, fault.reason) == (None, "the disk is full")


def test_a_damaged_record_is_a_failure_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "softmax.jsonl.gz"
    path.write_bytes(b"not a record")
    answer = reply(Swept(str(path)), ("a_b", "float32", "N=1"), cold)
    assert answer.value is None
    assert str(path) in answer.reason


def test_a_value_that_json_cannot_hold_is_a_failure(tmp_path: Path) -> None:
    answer = reply(swept(tmp_path, ok("a_b", "float32", 1, 1.0)), ("a_b", "float32", "N=1"), lambda _: math.inf)
    assert (answer.value, answer.reason) == (None, "the value is inf, which asv's files cannot hold")


def test_a_first_call_is_the_cold_one_where_that_was_measured() -> None:
    measurement = ok("a_b", "float32", 1, 1000.0)
    assert asv_suite.first_call_ns(measurement) == measurement.first_call_ns == 12.0
    both = msgspec.structs.replace(
        measurement, first_call_cold=FirstCall(100.0, 20.0, 3.0), first_call_warm=FirstCall(10.0, 2.0, 1.0)
    )
    assert asv_suite.first_call_ns(both) == 123.0


def test_units_are_asvs(tmp_path: Path) -> None:
    measurement = ok("a_b", "float32", 1, 1000.0)
    assert asv_suite.seconds(measurement.first_call_ns) == pytest.approx(12e-9)
    assert asv_suite.seconds(None) is None
    assert asv_suite.samples(measurement, "device_hot") is None
