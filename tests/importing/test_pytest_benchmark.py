"""pytest-benchmark's files as records."""

from __future__ import annotations

import subprocess
import sys

import pytest

from groundspeed.analysis.foreign import NotResults, read_object
from groundspeed.importing.pytest_benchmark import read_pytest_benchmark
from tests.importing.files import COMMIT, SECONDS, pytest_document, pytest_test

NS = [pytest.approx(x * 1e9) for x in SECONDS]


def test_a_test_is_an_operator_and_its_times_are_calls():
    (record,) = read_pytest_benchmark(pytest_document(pytest_test("test_sum", {"n": 1000, "impl": "numpy"})))
    (row,) = record.measurements
    assert (record.header.operator, row.implementation, row.dtype, row.shape) == ("test_sum", "numpy", "", {"n": 1000})
    assert row.samples == {"call": NS} and row.timer == "pytest_benchmark" and not row.unstable
    assert row.notes == ["imported from pytest-benchmark: tests/test_x.py::test_sum"]


def test_the_header_says_where_and_when():
    (record,) = read_pytest_benchmark(pytest_document(pytest_test("test_sum")))
    header = record.header
    assert header.machine == "cpu-amd-epyc-9474f-48-core-processor" and header.environment.threads == 96
    assert (header.commit, header.dirty, header.tier) == (COMMIT, False, "imported")
    assert header.started == "2026-01-02T09:00:00.250000+00:00"
    assert (header.environment.device, header.environment.os) == ("cpu", "Linux 6.1")


def test_without_samples_there_is_one_value_that_is_marked():
    test = pytest_test("test_sum", stats={"median": 2e-6, "rounds": 33})
    (record,) = read_pytest_benchmark(pytest_document(test))
    (row,) = record.measurements
    assert row.samples == {"call": [pytest.approx(2000)]}
    assert "median of 33 rounds alone" in row.unstable


def test_rounds_of_several_calls_are_noted():
    test = pytest_test("test_sum", stats={"median": 2e-6, "rounds": 9, "iterations": 50, "data": SECONDS})
    (record,) = read_pytest_benchmark(pytest_document(test))
    assert "each sample is the mean of 50 calls" in record.measurements[0].notes


def test_what_our_bridge_measured_is_device_time_of_the_operator():
    extra = {"timer": "clock", "case_digest": "c" * 16, "implementation_digest": "i" * 16, "unstable": "wide"}
    params = {"operator": "relu", "implementation": "torch_eager", "case": "float32 M=4,mode=up"}
    test = pytest_test("test_op", params, extra_info=extra, options={"timer": "groundspeed.device_time"})
    (record,) = read_pytest_benchmark(pytest_document(test))
    (row,) = record.measurements
    assert (record.header.operator, row.implementation) == ("relu", "torch_eager")
    assert (row.dtype, row.shape) == ("float32", {"M": 4, "mode": "up"})
    assert row.samples == {"device_cold": NS} and row.timer == "clock" and row.unstable == "wide"
    assert (row.case_digest, row.implementation_digest) == ("c" * 16, "i" * 16)


def test_a_gpu_that_the_file_does_not_name_leaves_the_machine_open():
    test = pytest_test("test_op", extra_info={"timer": "cupti"}, options={"timer": "groundspeed.device_time"})
    (record,) = read_pytest_benchmark(pytest_document(test))
    assert record.header.machine == "" and record.header.environment.device == "cuda"


def test_two_tests_of_one_name_are_two_operators():
    one, other = pytest_test("test_sum"), pytest_test("test_sum", fullname="tests/test_y.py::test_sum")
    names = [r.header.operator for r in read_pytest_benchmark(pytest_document(one, other))]
    assert names == ["test_sum", "test_sum_2"]


def test_results_that_nothing_tells_apart_are_refused():
    params = {"operator": "sum", "n": 3}
    with pytest.raises(NotResults, match="2 results of sum/pytest_benchmark n=3"):
        read_pytest_benchmark(pytest_document(pytest_test("test_a", params), pytest_test("test_b", params)))


def test_outside_a_repository_there_is_no_commit():
    (record,) = read_pytest_benchmark(pytest_document(pytest_test("t"), commit_info={"id": "unversioned"}))
    assert record.header.commit == ""


@pytest.mark.parametrize(
    "broken",
    [
        {"benchmarks": [{"name": "x"}]},
        {"benchmarks": [pytest_test("x", stats={})]},
        {"benchmarks": 3},
        {"machine_info": None},
        {"datetime": "yesterday"},
        {"benchmarks": [pytest_test("x", stats={"median": "fast"})]},
    ],
)
def test_a_file_that_is_not_whole_says_so(broken):
    with pytest.raises(NotResults, match="no whole file of pytest-benchmark"):
        read_pytest_benchmark(pytest_document(pytest_test("x"), **broken))


def test_a_file_that_pytest_benchmark_wrote_just_now(tmp_path):
    (tmp_path / "test_real.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', [10, 20])\n"
        "def test_sum(benchmark, n):\n    benchmark.pedantic(sum, args=(range(n),), rounds=11, iterations=2)\n"
    )
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-json=out.json", "--benchmark-save-data"]
    subprocess.run([sys.executable, *command], cwd=tmp_path, check=True, capture_output=True)
    (record,) = read_pytest_benchmark(read_object(tmp_path / "out.json"))
    assert record.header.operator == "test_sum" and [row.shape for row in record.measurements] == [{"n": 10}, {"n": 20}]
    assert all(len(row.samples["call"]) == 11 for row in record.measurements)
