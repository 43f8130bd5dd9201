"""`groundspeed sanitize` as a user types it, with a program in compute-sanitizer's place that runs nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from groundspeed import cli, nvml
from groundspeed.commands import sanitize as sanitize_command
from groundspeed.errors import UserError
from groundspeed.measure import lane
from groundspeed.measure.claim import Patience, claim
from groundspeed.tree import Tree
from tests.cli import toy_project
from tests.cli.toy_project import ROOT, groundspeed
from tests.sanitizer import logs

# Says of each case that it ran, notes how it was called, and reports what the folder's `found` holds where a case's
# label has the word in it.
FAKE = f"""#!{sys.executable}
import json, os, sys, time
arguments = sys.argv[1:]
log = arguments[arguments.index("--log-file") + 1]
request, events = arguments[-2:]
asked = json.load(open(request))
labels = [dtype + " " + ",".join(f"{{name}}={{value}}" for name, value in shape) for dtype, shape in asked["cases"]]
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls.jsonl"), "a") as file:
    file.write(json.dumps([arguments, labels, os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"),
        os.environ.get("CUDA_VISIBLE_DEVICES")]) + "\\n")
if os.path.exists(os.path.join(here, "refuse")):
    sys.exit("Error: unrecognised option '--padding'")
if os.path.exists(os.path.join(here, "sleep")):
    open(os.path.join(here, "pid"), "w").write(str(os.getpid()))
    time.sleep(600)
with open(events, "w") as file:
    for label in labels:
        file.write(json.dumps({{"type": "Began", "case": label}}) + "\\n")
        file.write(json.dumps({{"type": "Ran", "case": label}}) + "\\n")
    file.write(json.dumps({{"type": "Finished"}}) + "\\n")
found = os.path.join(here, "found")
wrong = os.path.exists(found) and asked["implementation"] == "cuda_bad" and any("12345" in label for label in labels)
open(log, "w").write(open(found).read() if wrong else {logs.CLEAN!r})
sys.exit(86 if wrong else 0)
"""


@pytest.fixture
def project(tmp_path):
    root = toy_project.make(tmp_path / "p", double={}, single={"triton_x": '"""Not by default."""\n'})
    for name in ("cuda_good", "cuda_bad"):
        (root / "impls" / "double" / f"{name}.cu").write_text("// Adds.\n")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "compute-sanitizer").write_text(FAKE)
    (folder / "compute-sanitizer").chmod(0o755)
    return root


def sanitize(project, *arguments: str, device: str = "cuda"):
    path = f"{project.parent / 'bin'}:{os.environ['PATH']}"
    return groundspeed("sanitize", *arguments, cwd=project, PATH=path, GROUNDSPEED_DEVICE=device)


def calls(project):
    return [json.loads(line) for line in (project.parent / "bin" / "calls.jsonl").read_text().splitlines()]


def test_all_cuda_implementations_and_no_others(project):
    done = sanitize(project, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"double/cuda_bad +clean  6 cases", lines[0])
    assert re.fullmatch(r"double/cuda_good +clean  6 cases", lines[1])
    assert re.fullmatch(r"memcheck: 2 implementations, 2 clean; \d+ s", lines[-1])
    assert len(calls(project)) == 2


def test_it_is_called_so_that_nothing_hides_an_error(project):
    sanitize(project, "double/cuda_good")
    ((arguments, labels, caching, _),) = calls(project)
    assert caching == "1" and len(labels) == 6
    assert arguments[:2] == ["--tool", "memcheck"] and "--padding" in arguments
    assert "groundspeed.sanitizer.child" in arguments
    sanitize(project, "double/cuda_good", "--tool", "racecheck")
    assert calls(project)[1][0][:2] == ["--tool", "racecheck"] and "--padding" not in calls(project)[1][0]


def test_an_error_is_shown_with_kernel_line_and_case(project):
    (project.parent / "bin" / "found").write_text(logs.MEMCHECK)
    done = sanitize(project)
    assert done.returncode == 1, done.stderr
    assert re.search(r"double/cuda_bad +78 errors\n", done.stdout)
    assert "Invalid __global__ write of size 4 bytes" in done.stdout
    assert "in past_end<float>, cuda_past_end.cu:21" in done.stdout
    assert "of float32 N=12345; float16 N=12345" in done.stdout
    assert re.search(r"double/cuda_good +clean", done.stdout)
    assert re.search(r"2 implementations, 1 clean, 1 with errors", done.stdout)


def test_the_tools_exit_status_is_believed_over_a_clean_log(project):
    (project.parent / "bin" / "found").write_text(logs.CLEAN)
    done = sanitize(project, "double/cuda_bad")
    assert done.returncode == 2 and "says errors, and its log shows none" in done.stdout


def test_a_tool_that_refuses_is_quoted(project):
    (project.parent / "bin" / "refuse").touch()
    done = sanitize(project, "double/cuda_good")
    assert done.returncode == 2
    assert "the tool did not run it: Error: unrecognised option '--padding'" in done.stdout
    assert "0 clean, 1 not watched to the end" in done.stdout


def test_without_the_tool_one_line_says_what_to_install(project, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    environment = {"PATH": str(bare), "CUDA_HOME": str(bare), "CUDA_PATH": str(bare), "GROUNDSPEED_DEVICE": "cuda"}
    done = groundspeed("sanitize", cwd=project, **environment)
    if os.path.exists("/usr/local/cuda/bin/compute-sanitizer"):
        pytest.skip("compute-sanitizer is installed with the CUDA toolkit of this machine")
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("groundspeed: compute-sanitizer is not on the PATH") and "install" in line


def hold_the_gpu(monkeypatch, tmp_path):
    """Another process measures on the only GPU; this one thinks it has it."""
    gpu = nvml.Gpu("NVIDIA Test", 1 << 30, "GPU-0000")
    monkeypatch.setattr(lane, "visible_gpus", lambda: (gpu,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GROUNDSPEED_DEVICE", "cuda")
    return claim(gpu.uuid, "GPU 0", Patience())


@pytest.mark.parametrize("name", ["sanitize", "profile"])
def test_a_gpu_that_is_measured_on_is_left_alone(project, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setenv("PATH", f"{project.parent / 'bin'}:{os.environ['PATH']}")
    held = hold_the_gpu(monkeypatch, tmp_path)
    with held:
        assert cli.main(["--project", str(project), name, "double/cuda_good"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "measures on GPU 0; type it again when that has ended" in err
    assert not (project.parent / "bin" / "calls.jsonl").exists()
    if name == "sanitize":
        assert cli.main(["--project", str(project), name, "double/cuda_good"]) == 0
        assert [call[3] for call in calls(project)] == ["GPU-0000"]


def test_without_a_gpu_one_line_says_so(project):
    done = sanitize(project, device="cpu")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "needs an NVIDIA GPU" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["double/cuda_god"], "did you mean 'cuda_good'"),
        (["single"], "no cuda_* implementation in single"),
        (["--jobs", "0"], "no number of processes"),
        (["--tool", "memchek"], "invalid choice"),
    ],
)
def test_a_mistake_is_one_line(project, arguments, said):
    done = sanitize(project, *arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_spread_over_processes_is_refused_by_name_and_left_out_of_a_pattern():
    tree = Tree(ROOT / "impls")
    assert {one.operator for one in sanitize_command._chosen(["re[ld]*/cuda_*"], tree)} == {"relu"}  # no reduce_scatter
    for named in (["reduce_scatter"], ["re*/cuda_*", "reduce_scatter/cuda_push"]):
        with pytest.raises(UserError, match="reduce_scatter is spread over processes"):
            sanitize_command._chosen(named, tree)


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind(project):
    folder = project.parent / "bin"
    (folder / "sleep").touch()
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "GROUNDSPEED_DEVICE": "cuda",
    }
    command = [sys.executable, "-m", "groundspeed", "sanitize", "double/cuda_good"]
    process = subprocess.Popen(command, cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (folder / "pid").exists() or not (folder / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)
