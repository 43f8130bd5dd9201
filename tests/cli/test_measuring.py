"""`groundspeed run` and `check` for real, in worker processes, on a toy operator."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from groundspeed.records import SELECTION_FILE, find_records, read_record
from tests.cli import toy_project
from tests.cli.toy_project import ADD, RAISES, TRITON, WRONG, groundspeed
from tests.paths import python_path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    files = {"torch_add": ADD, "torch_wrong": WRONG, "torch_raises": RAISES, "triton_double": TRITON}
    root = tmp_path_factory.mktemp("toy") / "p"
    return toy_project.make(root, double=files, fine={"torch_add": ADD}, broken={"spec": "SPEC = 3"})


@pytest.fixture(scope="module")
def whole_run(project):
    return groundspeed("run", cwd=project, GROUNDSPEED_DEVICE="cpu")


def records(project):
    return {path.name.partition(".")[0]: read_record(path) for path in find_records(project / "results")}


def test_a_run_prints_the_table_the_faults_and_where_the_results_are(whole_run, project):
    out = whole_run.stdout
    assert re.search(r"torch_add +\S+ [nµm]?s .*×", out)
    assert "error: ValueError: no such luck" in out and "torch_raises" in out
    assert "incorrect:" in out and "torch_wrong" in out
    assert "triton_double" in out[out.index("Skipped") :]
    assert "Time     " in out and "s for each of" in out
    assert "results/" in out[out.index("Results  ") :]
    assert max(map(len, out[: out.index("Results  ")].splitlines())) <= 80


def test_a_broken_spec_is_one_line_and_costs_only_itself(whole_run, project):
    assert whole_run.returncode == 2
    said = [line for line in whole_run.stderr.splitlines() if line.startswith("groundspeed: ")]
    assert len(said) == 1 and "broken" in said[0] and "expected an Operator" in said[0]
    assert set(records(project)) == {"double", "fine"}


def test_the_table_shows_what_the_record_holds(whole_run, project):
    from statistics import median

    from groundspeed.report.units import duration

    for entry in records(project)["double"].measurements:
        if entry.status == "ok":
            shown = re.search(rf"{entry.implementation} +(\S+ \S+)", whole_run.stdout).group(1)
            assert shown == duration(median(entry.samples["device_cold"]))
    again = groundspeed("table", "double", cwd=project).stdout.splitlines()
    rows = [line for line in whole_run.stdout.splitlines() if "×" in line and "torch_add" in line]
    assert rows and rows[0] in again


def test_in_a_log_progress_is_plain_lines(whole_run):
    assert "\r" not in whole_run.stderr and "\x1b" not in whole_run.stderr
    assert re.search(r"double: 4 implementations, 1 case on cpu-\S+", whole_run.stderr)
    assert re.search(r"double: measured in \d+ s", whole_run.stderr)


def test_only_one_implementation_is_measured_beside_the_baseline(project, tmp_path):
    done = groundspeed("run", "--only", "double/torch_add", "--results", str(tmp_path), cwd=project)
    assert done.returncode == 0, done.stderr
    (path,) = find_records(tmp_path)
    assert {entry.implementation for entry in read_record(path).measurements} == {"torch_eager", "torch_add"}


def test_the_baseline_alone_is_named_once_in_the_command_of_its_record(project, tmp_path):
    only = ("--only", "double/torch_eager", "--only", "double/torch_eager")
    done = groundspeed("run", *only, "--results", str(tmp_path), cwd=project)
    assert done.returncode == 0, done.stderr
    (path,) = find_records(tmp_path)
    assert read_record(path).header.command.count("--only") == 1


def test_check_finds_the_wrong_one_and_runs_triton_in_the_interpreter(project):
    done = groundspeed("check", "double", cwd=project, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 1
    assert "torch_wrong" in done.stdout and "incorrect" in done.stdout
    alone = groundspeed("check", "double/triton_double", cwd=project, GROUNDSPEED_DEVICE="cpu")
    assert alone.returncode == 0, alone.stdout
    assert "6 checks passed" in alone.stdout


def test_check_that_could_check_nothing_is_no_success(tmp_path):
    files = {"cupy_raw": '"""CuPy."""\n\ndef prepare(x):\n    return lambda: x * 2\n'}
    root = toy_project.make(tmp_path / "p", double=files)
    done = groundspeed("check", "double/cupy_raw", cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 1 and "nothing could be checked" in done.stdout


def test_a_full_disk_costs_the_record_and_says_so(project, tmp_path):
    """A limit on the size of files stands in for the disk: a record of many rounds is larger than 1 KiB."""
    command = f"ulimit -f 1; {sys.executable} -m groundspeed run --only double --only fine --results {tmp_path}"
    env = {**os.environ, "PYTHONPATH": python_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", command], cwd=project, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("groundspeed: ")]
    assert [line.split(": ")[1] for line in said] == ["double", "fine"], done.stderr
    assert all("cannot be written" in line for line in said)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [SELECTION_FILE], "a torn file was left"
    again = re.search(r"mend that and type: .*groundspeed (run .*)", said[0]).group(1)
    assert "--only double --only fine" in again and f"--results {tmp_path} --resume " in again
    assert groundspeed(*again.split(), cwd=project).returncode == 1, "double has a failing implementation"
    assert len(find_records(tmp_path)) == 2


def test_a_damaged_record_of_an_earlier_run_stops_no_run(project, tmp_path):
    narrowed = ["--only", "fine", "--only", "double/torch_add", "--results", str(tmp_path)]
    first = groundspeed("run", *narrowed, cwd=project)
    assert first.returncode == 0, first.stderr
    double, path = find_records(tmp_path)
    double.unlink()
    path.write_bytes(path.read_bytes()[:40])
    assert groundspeed("run", "--only", "fine", "--results", str(tmp_path), cwd=project).returncode == 0
    done = groundspeed("run", *narrowed, "--resume", path.parent.name, cwd=project)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert str(path.name) in done.stderr and "torch_add" in done.stdout


def test_results_that_cannot_be_kept_are_refused_before_anything_is_measured(project, tmp_path):
    blocked = tmp_path / "results"
    blocked.write_text("a file where the folder should be")
    done = groundspeed("run", "--only", "fine", "--results", str(blocked), cwd=project)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert str(blocked) in done.stderr and "measured" not in done.stderr


def test_an_interrupted_run_says_how_to_go_on_and_goes_on(project, tmp_path):
    command = [
        sys.executable,
        "-m",
        "groundspeed",
        "run",
        "--only",
        "double",
        "--only",
        "fine",
        "--results",
        str(tmp_path),
    ]
    env = {**os.environ, "PYTHONPATH": python_path()}
    process = subprocess.Popen(command, cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not find_records(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err, err
    again = re.search(r"kept double; to go on, type: .*groundspeed (run .*)", err).group(1)
    before = {path: path.read_bytes() for path in find_records(tmp_path)}
    done = groundspeed(*again.split(), cwd=project)
    assert "double: already in run" in done.stderr
    after = find_records(tmp_path)
    assert {path.name for path in after} == {"double.jsonl.gz", "fine.jsonl.gz"}
    assert len({path.parent for path in after}) == 1
    assert all(path.read_bytes() == content for path, content in before.items())
    # a plain run afterwards reuses nothing
    groundspeed("run", "--only", "fine", "--results", str(tmp_path), cwd=project)
    assert len(find_records(tmp_path)) == 3


def test_what_has_no_selected_case_is_named_and_the_others_are_measured(tmp_path):
    root = toy_project.make(tmp_path / "p", double={}, wide={})
    spec = root / "impls" / "wide" / "spec.py"
    spec.write_text(
        spec.read_text().replace('"small": (case("float32", N=4096),)', '"small": (case("float16", N=4096),)')
    )
    done = groundspeed("run", "--dtype", "float32", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "groundspeed: not measured: tier small has no float32 case of wide" in done.stderr.splitlines()
    assert set(records(root)) == {"double"}
    assert groundspeed("history", cwd=root).returncode == 0


def test_a_resumed_run_is_narrowed_as_it_was(project, tmp_path):
    only = ["--only", "fine", "--only", "double/torch_add"]
    where = ["--results", str(tmp_path)]
    first = groundspeed("run", *only, "--dtype", "float32", *where, cwd=project)
    assert first.returncode == 0, first.stderr
    assert f"groundspeed table --results {tmp_path}\n" in first.stdout
    assert f"groundspeed dash --results {tmp_path}\n" in first.stdout
    double, fine = find_records(tmp_path)
    double.unlink()
    resume = ["--resume", fine.parent.name, *where]
    for options, said in (
        (["--tier", "core"], "began with --tier small: leave --tier out, or run without --resume"),
        (["--only", "fine"], "began with --only fine double/torch_add: "),
        (["--dtype", "float16"], "began with --dtype float32: "),
        (["--energy"], "began without --energy: "),
    ):
        done = groundspeed("run", *options, *resume, cwd=project)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 2 and said in line, line
    assert find_records(tmp_path) == [fine]
    done = groundspeed("run", *resume, cwd=project)
    assert done.returncode == 0, done.stderr
    assert find_records(tmp_path) == [double, fine], "no other operator"
    assert {row.implementation for row in read_record(double).measurements} == {"torch_eager", "torch_add"}
    assert {row.dtype for row in read_record(double).measurements} == {"float32"}
    # a run of an earlier version wrote no selection down: its options are typed again, of its own tier
    (fine.parent / SELECTION_FILE).unlink()
    double.unlink()
    done = groundspeed("run", *only, "--tier", "core", *resume, cwd=project)
    assert done.returncode == 2 and "began with --tier small" in done.stderr
    assert groundspeed("run", *only, *resume, cwd=project).returncode == 0
    assert not (fine.parent / SELECTION_FILE).exists(), "what it was narrowed to is not known"


def test_on_a_terminal_one_line_shows_how_far_it_is(project, tmp_path):
    leader, follower = pty.openpty()
    env = {**os.environ, "PYTHONPATH": python_path(), "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-m", "groundspeed", "run", "--only", "fine", "--results", str(tmp_path)]
    process = subprocess.Popen(command, cwd=project, env=env, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    while select.select([leader], [], [], 120)[0]:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the other end is closed: the command has ended
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)
    assert process.wait(timeout=60) == 0
    text = seen.decode()
    drawn = [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split(r"[\r\n]+", text)]
    bars = [line for line in drawn if "▕" in line]
    assert bars and all(re.search(r"\d+ %  about .* left", line) for line in bars)
    assert max(map(len, bars)) <= 80
    assert re.search(r"fine: measured in \d+ s", text)
