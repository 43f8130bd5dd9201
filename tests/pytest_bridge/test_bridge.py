"""The bridge: pytest-benchmark's own statistics, saving and comparing, on samples that the engine measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from groundspeed.pytest_plugin import ReplayClock
from tests.cli import toy_project
from tests.cli.toy_project import ADD, TRITON
from tests.paths import python_path

pytest.importorskip("pytest_benchmark")

BENCHMARK = """
def test_device_time(operator_benchmark):
    operator_benchmark()
"""
# Stands in for the engine: each implementation's samples come from a file, and each sweep is written down.
FAKE_ENGINE = """
import json, pathlib
import pytest
from groundspeed import bridge
from groundspeed.records import Measurement

HERE = pathlib.Path(__file__).parent

def sweep(root, results, wanted, tier):
    tests = list(wanted)
    with open(HERE / "sweeps.jsonl", "a") as file:
        file.write(json.dumps(sorted(one.id for one in tests)) + "\\n")
    known = json.loads((HERE / "samples.json").read_text())
    rows = {}
    for one in tests:
        entry = known[one.implementation]
        dtype, _, shape = one.case.partition(" ")
        common = dict(implementation=one.implementation, dtype=dtype, shape={"N": 4096}, timer="cupti")
        rows[one] = Measurement(status="ok", samples={"device_cold": entry, "call": entry}, **common) \\
            if isinstance(entry, list) else Measurement(status=entry, reason="told so", failure="error", **common)
    return rows

@pytest.fixture(autouse=True, scope="session")
def fake_engine():
    patch = pytest.MonkeyPatch()
    patch.setattr(bridge, "sweep", sweep)
    yield
    patch.undo()
"""
SAMPLES = [1420.0, 1418.0, 1423.5, 1419.25, 1421.0, 1417.0, 1422.0, 1420.5, 1419.0]


@pytest.fixture
def suite(tmp_path):
    root = toy_project.make(tmp_path / "p", double={"torch_add": ADD, "triton_double": TRITON}, other={})
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "test_time.py").write_text(BENCHMARK)
    (root / "conftest.py").write_text(FAKE_ENGINE)
    samples(root, torch_eager=SAMPLES, torch_add=SAMPLES, triton_double="skipped")
    return root


def samples(root, **known):
    (root / "samples.json").write_text(json.dumps(known))


def run(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": python_path(), "GROUNDSPEED_DEVICE": "cpu", **environment}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "groundspeed.pytest_plugin",
        "-p",
        "no:dash",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run([*command, *arguments], cwd=root, env=env, capture_output=True, text=True, timeout=300)


def saved(root: Path, *arguments: str) -> dict:
    done = run(root, "--benchmark-only", "--benchmark-json=out.json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return {entry["params"]["operator"] + "/" + entry["params"]["implementation"]: entry
            for entry in json.loads((root / "out.json").read_text())["benchmarks"]}  # fmt: skip


def test_each_round_is_a_sample_digit_for_digit(suite):
    entry = saved(suite)["double/torch_add"]
    assert entry["stats"]["data"] == [sample * 1e-9 for sample in SAMPLES]
    assert entry["stats"]["rounds"] == len(SAMPLES) and entry["stats"]["iterations"] == 1
    assert entry["stats"]["median"] == median(SAMPLES) * 1e-9
    assert entry["group"] == "double float32 N=4096"
    assert entry["extra_info"]["timer"] == "cupti"
    assert entry["extra_info"]["call_median"] == median(SAMPLES) * 1e-9
    assert entry["options"]["timer"] == "groundspeed.device_time"


def test_only_what_pytest_selected_is_swept_and_once_an_operator(suite):
    saved(suite, "-k", "double and not triton")
    sweeps = [json.loads(line) for line in (suite / "sweeps.jsonl").read_text().splitlines()]
    assert sweeps == [["double-torch_add-float32-N=4096", "double-torch_eager-float32-N=4096"]]


def test_skipped_and_failed_measurements_say_why(suite):
    samples(suite, torch_eager=SAMPLES, torch_add="failed", triton_double="skipped")
    done = run(suite, "--benchmark-only", "-rs", "-k", "double")
    assert done.returncode == 1
    assert "double/torch_add float32 N=4096: error: told so" in done.stdout
    assert "SKIPPED" in done.stdout and "told so" in done.stdout
    assert "was not used at all" not in done.stdout


@pytest.mark.parametrize(("slower", "status"), [(1.0, 0), (1.04, 0), (1.06, 1)])
def test_autosave_compare_and_fail_on_a_regression_of_the_median(suite, slower, status):
    first = run(suite, "--benchmark-only", "--benchmark-autosave", "-k", "double")
    assert first.returncode == 0 and list((suite / ".benchmarks").rglob("*.json")), first.stdout
    samples(suite, torch_eager=SAMPLES, torch_add=[s * slower for s in SAMPLES], triton_double="skipped")
    again = run(suite, "--benchmark-only", "-k", "double", "--benchmark-compare", "--benchmark-compare-fail=median:5%")
    assert (again.returncode != 0) == bool(status), again.stdout + again.stderr
    assert ("Performance has regressed" in again.stdout + again.stderr) == bool(status)


def test_disabled_benchmarks_measure_nothing(suite):
    done = run(suite, "--benchmark-disable", "-rs", "-k", "double")
    assert done.returncode == 0 and "groundspeed check" in done.stdout
    assert not (suite / "sweeps.jsonl").exists()


def test_a_selection_that_matches_nothing_is_a_usage_error(suite):
    done = run(suite, "--benchmark-only", GROUNDSPEED_OPERATORS="dubble")
    assert done.returncode != 0
    assert "unknown operator 'dubble'" in done.stdout + done.stderr


def test_a_mark_of_the_test_keeps_its_other_options(suite):
    (suite / "test_time.py").write_text("import pytest\n\n@pytest.mark.benchmark(group='mine')" + BENCHMARK)
    assert saved(suite, "-k", "torch_add")["double/torch_add"]["group"] == "mine"


def test_a_second_use_of_the_clock_is_refused():
    clock = ReplayClock()
    clock.load([1000.0, 2000.0])
    assert [clock() for _ in range(4)] == [0.0, 1000.0 * 1e-9, 0.0, 2000.0 * 1e-9]
    with pytest.raises(RuntimeError, match="more rounds than were measured"):
        clock()


@pytest.mark.slow
def test_for_real_with_the_engine(suite):
    (suite / "conftest.py").unlink()
    entries = saved(suite, "-k", "double")
    assert set(entries) == {"double/torch_eager", "double/torch_add"}
    for entry in entries.values():
        assert entry["stats"]["rounds"] >= 15 and 1e-7 < entry["stats"]["median"] < 1
        assert entry["extra_info"]["timer"] == "clock"


@pytest.mark.slow
def test_any_function_can_be_timed_in_place(suite):
    (suite / "test_time.py").write_text(
        "import time\n\ndef test_sleep(gpu_benchmark):\n"
        "    assert gpu_benchmark(lambda s: (time.sleep(s), 'slept')[1], 0.01) == 'slept'\n"
    )
    done = run(
        suite, "--benchmark-only", "--benchmark-json=out.json", "--benchmark-max-time=0.5", CUDA_VISIBLE_DEVICES=""
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (entry,) = json.loads((suite / "out.json").read_text())["benchmarks"]
    assert 0.01 <= entry["stats"]["median"] < 0.02


@pytest.mark.slow
def test_an_interpreted_kernel_is_never_timed(suite):
    (suite / "test_time.py").write_text("def test_it(gpu_benchmark):\n    gpu_benchmark(lambda: 1)\n")
    done = run(suite, "--benchmark-only", TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1 and "TRITON_INTERPRET is set" in done.stdout
