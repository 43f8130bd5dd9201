"""``groundspeed calibrate`` on the CPU, whole: two fresh processes and two small probes."""

from __future__ import annotations

import re

import pytest

from groundspeed.calibrate.probes import probes_of
from groundspeed.calibrate.report import BEGIN, END
from groundspeed.calibrate.schema import newest, read_calibration, write_calibration
from groundspeed.gate.floors import NoiseLine
from tests.calibrate.make import calibration
from tests.cli import toy_project
from tests.cli.toy_project import groundspeed

CPU = {"GROUNDSPEED_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A project in which it ran, and what it printed."""
    root = toy_project.make(tmp_path_factory.mktemp("calibrate") / "p", double={})
    arguments = ["--processes", "2", "--beside", "1", "--only", "relu_64KiB", "--only", "matmul_*"]
    return root, groundspeed("calibrate", *arguments, cwd=root, **CPU)


def stored(root):
    (machine,) = (root / "results").iterdir()
    return read_calibration(newest(root / "results", machine.name)), machine


def test_each_process_reads_each_probe_twice_over(calibrated):
    root, done = calibrated
    assert done.returncode == 0, done.stderr
    found, _ = stored(root)
    assert [probe.name for probe in found.probes] == ["relu_64KiB", "matmul_256"] and found.timer == "clock"
    ours = [one for one in found.readings if one.method == "clock"]
    assert [(one.probe, one.process) for one in ours] == [
        (name, process) for process in (0, 1) for name in ("relu_64KiB", "matmul_256")
    ]
    assert all(one.count == 60 and one.value_ns > 1_000 and one.seconds > 0 and one.spread is not None for one in ours)
    assert {one.process for one in found.readings if one.method == "torch_benchmark"} == {0}
    assert len(found.ratios) == 2 * 2 * 2 and all(abs(one.log_ratio) < 3 for one in found.ratios)
    assert {one.name for one in found.costs} == {"clock_pair", "least_call"} and found.ceilings == []
    assert found.phases.keys() >= {"start", "peers", "load", "probes"} and found.seconds > 0


def test_the_noise_is_where_the_gate_reads_it(calibrated):
    import msgspec

    root, _ = calibrated
    _, machine = stored(root)
    (path,) = (machine / "noise").glob("*.jsonl")
    lines = [msgspec.json.decode(line, type=NoiseLine) for line in path.read_bytes().splitlines()]
    assert {(line.implementation, line.metric) for line in lines} == {
        (f"torch_{name}", f"device_{which}") for name in ("relu", "matmul") for which in ("cold", "hot")
    }
    assert all(line.operator == "calibrate" and len(line.log_ratios) == 2 for line in lines)


def test_it_says_what_it_found_and_what_is_not_available(calibrated):
    _, done = calibrated
    out = " ".join(done.stdout.split())
    assert re.search(r"relu_64KiB +[\d.]+ [µn]s", done.stdout)
    for title in ("NVBench", "do_bench", "Nsight Compute"):
        assert f"{title}: no figures: needs a GPU" in out
    assert "bounds on device time: not judged" in out
    assert "process 1 of 2" in done.stderr and "calibration/" in done.stdout and "noise/" in done.stdout


def test_the_stored_one_is_shown_again(calibrated):
    root, done = calibrated
    again = groundspeed("calibrate", "--stored", cwd=root, **CPU)
    assert again.returncode == 0 and again.stdout in done.stdout


def test_the_page_is_written_and_checked(calibrated):
    root, _ = calibrated
    page = root / "docs" / "measuring.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    write_calibration(root / "results" / "nvidia-h200" / "calibration" / "a.json.gz", calibration())
    assert groundspeed("calibrate", "--markdown", "--check", cwd=root).returncode == 1
    assert groundspeed("calibrate", "--markdown", cwd=root).returncode == 0
    assert "| relu_64KiB | 1.42 µs |" in page.read_text() and page.read_text().endswith(f"{END}\nafter\n")
    assert groundspeed("calibrate", "--markdown", "--check", cwd=root).returncode == 0


def test_a_page_is_left_as_it_is_where_no_calibration_is_found(tmp_path):
    root = toy_project.make(tmp_path / "p", double={})
    page, empty = root / "docs" / "measuring.md", tmp_path / "empty"
    page.parent.mkdir(exist_ok=True)
    before = f"before\n{BEGIN}\n1.42\n{END}\nafter\n"
    page.write_text(before)
    done = groundspeed("calibrate", "--markdown", "--results", str(empty), cwd=root)
    assert done.returncode == 2 and page.read_text() == before and not done.stdout
    assert f"{empty}/nvidia-h200 holds no calibration" in done.stderr and len(done.stderr.splitlines()) == 1
    write_calibration(empty / "nvidia-h200" / "calibration" / "a.json.gz", calibration())
    done = groundspeed("calibrate", "--markdown", "--results", str(empty), cwd=root)
    assert done.returncode == 0 and f"written from {empty}/nvidia-h200" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "relu_64kb"], "no probe matches 'relu_64kb': did you mean 'relu_64KiB'"),
        (["--processes", "0"], "--processes: expected at least 1"),
        (["--check"], "--check goes with --markdown"),
        (["--machine", "x"], "--machine goes with --stored"),
        (["--stored", "--machine", "nvidia-none"], "no calibration of nvidia-none"),
        (["--stored", "--machine", "nvidia-none"], "there are those of cpu-"),
        (["--stored", "--only", "relu_64KiB"], "--only: for measuring, and --stored measures nothing"),
        (["--markdown", "--processes", "3"], "--processes: for measuring, and --markdown measures nothing"),
        (["--markdown", "--stored"], "type one of them"),
    ],
)
def test_wrong_use_is_one_line(calibrated, arguments, said):
    root, _ = calibrated
    done = groundspeed("calibrate", *arguments, cwd=root, **CPU)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_probes_are_a_dozen_or_few_and_named_once(device):
    probes = probes_of(device)
    assert len({probe.name for probe in probes}) == len(probes) == (13 if device == "cuda" else 5)


def test_a_probe_is_the_call_it_says():
    torch = pytest.importorskip("torch")
    for probe in probes_of("cpu"):
        first, second = probe.make("cpu"), probe.make("cpu")
        assert torch.equal(first(), second()), probe.name
        assert first().dtype == getattr(torch, probe.dtype)
