"""NVBench's files as records."""

from __future__ import annotations

import math
import os

import pytest

from groundspeed.analysis.foreign import NotResults
from groundspeed.importing.nvbench import is_nvbench, read_nvbench
from tests.importing.files import benchmark, nvbench_document, samples_beside, state, summary, timed, write


@pytest.fixture
def read(tmp_path):
    def read(*benchmarks, **more):
        document = nvbench_document(*benchmarks, **more)
        return read_nvbench(document, write(tmp_path / "out.json", document))

    return read


def test_a_state_is_a_measurement_of_its_axes(read):
    (record,) = read(benchmark("softmax", state({"T": "F16", "Elements": 4096, "Layout": "rows"}, timed(2e-5))))
    (row,) = record.measurements
    assert (record.header.operator, row.implementation, row.dtype) == ("softmax", "nvbench", "float16")
    assert row.shape == {"Elements": 4096, "Layout": "rows"} and row.timer == "nvbench"
    assert row.samples == {"device_cold": [pytest.approx(20_000)], "device_hot": [pytest.approx(10_000)]}
    assert row.unstable == "the file has the mean of 40 samples alone, so no interval: --jsonbin keeps all"
    assert "call" not in row.samples


def test_the_median_is_preferred_where_there_is_one(read):
    (record,) = read(benchmark("softmax", state({}, timed(2e-5, median=1.9e-5))))
    (row,) = record.measurements
    assert row.samples["device_cold"] == [pytest.approx(19_000)] and "the median of 40" in row.unstable


@pytest.mark.parametrize("recorded", ["", "/home/someone/else/out.json-bin/0.bin", "temp/out.json-bin/0.bin"])
def test_all_samples_are_read_from_beside_the_file(read, tmp_path, recorded):
    seconds = [1e-5, 1.5e-5, 2e-5]
    kept = samples_beside(tmp_path / "out.json", seconds, recorded)
    (record,) = read(benchmark("softmax", state({}, [*timed(2e-5), kept])))
    (row,) = record.measurements
    assert row.samples["device_cold"] == [pytest.approx(x * 1e9) for x in seconds] and not row.unstable


def test_samples_are_looked_for_nowhere_else(read, tmp_path):
    (tmp_path.parent / "0.bin").write_bytes(b"\0" * 12)
    for recorded in ("../0.bin", "/etc/passwd", "..", "gone-bin/0.bin"):
        kept = samples_beside(tmp_path / "out.json", [1e-5] * 3, recorded)
        (record,) = read(benchmark("softmax", state({}, [*timed(2e-5), kept])))
        assert record.measurements[0].samples["device_cold"] == [pytest.approx(20_000)], recorded


def test_samples_that_are_cut_short_are_refused(read, tmp_path):
    kept = samples_beside(tmp_path / "out.json", [1e-5] * 3)
    (tmp_path / "out.json-bin" / "0.bin").write_bytes(b"\0" * 10)
    with pytest.raises(NotResults, match="holds 10 bytes, expected 3 samples"):
        read(benchmark("softmax", state({}, [*timed(2e-5), kept])))


def test_skipped_and_untimed_states_keep_their_reason(read):
    (record,) = read(
        benchmark(
            "softmax",
            state({"n": 1}, [], is_skipped=True, skip_reason="too small"),
            state({"n": 2}, [summary("nv/cold/time/gpu/mean", None)]),
            state({"n": 3}, [summary("nv/cold/time/gpu/mean", math.inf)]),
            state({"n": 4}, timed(1e-5)),
        )
    )
    assert [(row.status, row.reason) for row in record.measurements] == [
        ("skipped", "too small"),
        ("skipped", "NVBench gave no cold GPU time"),
        ("skipped", "NVBench gave no cold GPU time"),
        ("ok", ""),
    ]


def test_each_gpu_has_records_of_its_own_machine(read):
    devices = ("NVIDIA H200", "NVIDIA A100-SXM4-80GB")
    bench = benchmark("copy", state({}, timed(1e-5), device=0), state({}, timed(2e-5), device=1))
    first, second = read(bench, devices=devices)
    assert (first.header.machine, second.header.machine) == ("nvidia-h200", "nvidia-a100-sxm4-80gb")
    environment = first.header.environment
    assert (environment.capability, environment.multiprocessors, environment.l2_bytes) == ("9.0", 132, 60 << 20)
    assert first.header.command == "bin/softmax --json out.json"


def test_a_file_that_names_no_gpu_leaves_the_machine_open(read):
    (record,) = read(benchmark("copy", state({}, timed(1e-5))), devices=())
    assert record.header.machine == ""


def test_the_time_is_the_files_for_nvbench_writes_none(tmp_path):
    document = nvbench_document(benchmark("copy", state({}, timed(1e-5))))
    path = write(tmp_path / "out.json", document)
    os.utime(path, (1_767_225_600, 1_767_225_600))
    (record,) = read_nvbench(document, path)
    assert record.header.started == "2026-01-01T00:00:00+00:00"


def test_items_a_call_come_from_the_rate(read):
    (record,) = read(benchmark("copy", state({}, [*timed(2e-5), summary("nv/cold/bw/item_rate", 5e8)])))
    assert record.measurements[0].items == 10_000


def test_another_version_of_the_format_is_refused(tmp_path):
    document = nvbench_document(benchmark("copy", state({}, timed(1e-5))))
    document["meta"]["version"]["json"] = {"major": 2, "string": "2.1.0"}
    with pytest.raises(NotResults, match=r"version 2\.1\.0, 1\.x is read"):
        read_nvbench(document, tmp_path / "out.json")


@pytest.mark.parametrize("broken", [3, [{"states": []}], [{"name": "x", "states": [{}]}], [{"name": "x", "states": 3}]])
def test_a_file_that_is_not_whole_says_so(tmp_path, broken):
    document = {**nvbench_document(), "benchmarks": broken}
    with pytest.raises(NotResults, match="no whole file of NVBench"):
        read_nvbench(document, write(tmp_path / "out.json", document))


def test_it_is_told_from_pytest_benchmark():
    assert is_nvbench(nvbench_document()) and not is_nvbench({"benchmarks": [], "machine_info": {}})
