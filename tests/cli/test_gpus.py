"""`groundspeed run` over several GPUs, which are made up: real workers on the CPU, each told to see one of them."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from groundspeed import nvml
from groundspeed.cli import main
from groundspeed.commands import run as command
from groundspeed.commands import sweeping
from groundspeed.measure.handing_out import hand_out
from groundspeed.measure.lane import Place, places
from groundspeed.records import find_records, read_record
from tests.cli import toy_project
from tests.cli.toy_project import ADD, SPEC, groundspeed
from tests.paths import python_path

pytestmark = pytest.mark.slow

TWO = (nvml.Gpu("NVIDIA H200", 1 << 37, "GPU-aa"), nvml.Gpu("NVIDIA H200", 1 << 37, "GPU-bb"))
TELLS = '''"""Writes down when, where and for what it was measured."""

import os, time
from pathlib import Path

FILE = Path(os.environ["TELLS_TO"]) / f"{Path(__file__).parent.name}-{os.getpid()}.txt"


def prepare(x):
    def run():
        with FILE.open("a") as file:
            file.write(f"{time.monotonic()} {os.environ['CUDA_VISIBLE_DEVICES']}\\n")
        return x + x

    return run
'''
ONE, MORE = 'case("float32", N=4096),)', 'case("float32", N=4096), case("float16", N=4096))'
MANY = SPEC.replace(f'"small": ({ONE}', f'"small": ({MORE}')


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Five operators, of which ``longest`` has the most to measure."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TELLS_TO", str(tmp_path))
    monkeypatch.setenv("GROUNDSPEED_DEVICE", "cpu")
    monkeypatch.setattr(command, "_check_gpu_options", lambda arguments, device: None)
    monkeypatch.setattr(command, "_places", lambda gpus, device: places(gpus or "0", TWO))
    names = ("first", "longest", "second", "third", "fourth")
    files = {"torch_tells": TELLS, "torch_add": ADD}
    operators = {name: {**files, **({"spec": MANY} if name == "longest" else {})} for name in names}
    return toy_project.make(tmp_path / "p", **operators)


def told(tmp_path):
    """(operator, GPU) → the first and last moment of it."""
    spans = {}
    for file in tmp_path.glob("*-*.txt"):
        lines = [line.split() for line in file.read_text().splitlines()]
        (gpu,) = {gpu for _, gpu in lines}
        spans[file.stem.partition("-")[0], gpu] = float(lines[0][0]), float(lines[-1][0])
    return spans


def test_operators_go_to_whichever_gpu_is_free_the_longest_first_and_never_two_to_one(
    project, tmp_path, capsys, monkeypatch
):
    orders = []
    monkeypatch.setattr(sweeping, "hand_out", lambda names, *rest: orders.append(names) or hand_out(names, *rest))
    assert main(["--project", str(project), "run", "--gpus", "all"]) == 0
    spans = told(tmp_path)
    assert len(spans) == 5 and {gpu for _, gpu in spans} == {"GPU-aa", "GPU-bb"}, "each operator on one GPU, whole"
    for gpu in ("GPU-aa", "GPU-bb"):
        mine = sorted(span for (_, on), span in spans.items() if on == gpu)
        assert all(end < begin for (_, end), (begin, _) in pairwise(mine)), mine
    first = sorted(spans, key=lambda key: spans[key][0])[:2]
    assert "longest" in {operator for operator, _ in first}
    began = [re.match(r"(\w+): 3 implementations", line) for line in capsys.readouterr().err.splitlines()]
    # Two lanes begin at once, and either may say so first.
    assert "longest" in [match.group(1) for match in began if match][:2]
    (order,) = orders
    assert order[0] == "longest" and len(order) == 5
    records = find_records(project / "results")
    assert {path.parent.parent.parent.name for path in records} == {"nvidia-h200"}
    assert len({path.parent.name for path in records}) == 1 and len(records) == 5
    for path in records:
        assert all(row.status == "ok" for row in read_record(path).measurements)


def test_progress_shows_both(project, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["--project", str(project), "run", "--gpus", "0,1", "--only", "first", "--only", "second"]) == 0
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*[mK]", "", screen.getvalue()))
    assert any(line.startswith("2 operators ▕") and "first" in line and "second" in line for line in lines), lines
    ended = [line.rstrip() for line in lines if ": measured on " in line]
    assert {re.sub(r" in .*", "", line) for line in ended} in (
        {"first: measured on GPU 0", "second: measured on GPU 1"},
        {"first: measured on GPU 1", "second: measured on GPU 0"},
    )


def test_what_one_operator_lacks_stops_no_other(project, capsys):
    (project / "impls" / "second" / "spec.py").write_text("SPEC = 3\n")
    assert main(["--project", str(project), "run", "--gpus", "all"]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("groundspeed: ")]
    assert len(said) == 1 and "second" in said[0] and "expected an Operator" in said[0]
    assert len(find_records(project / "results")) == 4


RUN = """
import sys
from groundspeed import nvml
from groundspeed.cli import main
from groundspeed.commands import run as command
from groundspeed.commands import sweeping
from groundspeed.measure.lane import places
two = tuple(nvml.Gpu("NVIDIA H200", 1 << 37, uuid) for uuid in ("GPU-aa", "GPU-bb"))
command._check_gpu_options = lambda arguments, device: None
command._places = lambda gpus, device: places(gpus or "0", two)
sys.exit(main(sys.argv[1:]))
"""


def start(project, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", RUN, "--project", str(project), "run", *arguments],
        env={**os.environ, "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_runs_do_not_overlap_and_one_of_them_waits(project, tmp_path, capsys):
    other = start(project, "--gpus", "0", "--only", "longest", "--only", "first")
    wait_for(lambda: any(tmp_path.glob("longest-*.txt")))
    assert main(["--project", str(project), "run", "--gpus", "0,1", "--only", "second"]) == 2
    (said,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("groundspeed: "))
    assert said == (
        f"groundspeed: another groundspeed (process {other.pid}) measures on GPU 0; to wait for it, add --wait"
    )
    assert main(["--project", str(project), "run", "--gpus", "0", "--only", "second", "--wait"]) == 0
    assert other.wait(timeout=60) == 0
    other.communicate()
    spans = told(tmp_path)
    assert spans["second", "GPU-aa"][0] > spans["first", "GPU-aa"][1] > spans["longest", "GPU-aa"][1]


def test_ctrl_c_ends_both_leaves_no_worker_and_says_how_to_go_on(project, tmp_path):
    from tests.measure.test_kills import NURSERY, children
    from tests.measure.test_process import gone

    runner = start(project, "--gpus", "all")
    wait_for(lambda: len(find_records(project / "results")) >= 2)
    nurseries = children(runner.pid, NURSERY)
    workers = [worker for nursery in nurseries for worker in children(nursery, NURSERY)]
    runner.send_signal(signal.SIGINT)
    _, err = runner.communicate(timeout=60)
    assert runner.returncode == 130 and "Traceback" not in err, err
    assert len(nurseries) == 2 and all(map(gone, nurseries + workers))
    again = re.search(r"to go on, type: .*groundspeed (run .*)", err).group(1)
    assert "--gpus all" in again and len(find_records(project / "results")) < 5
    assert main(["--project", str(project), *again.split()]) == 0
    assert len(find_records(project / "results")) == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpus", "all"], "--gpus all: this run is on the CPU; leave it out"),
        (["--wait"], "--wait waits for a GPU, and this run is on the CPU; leave it out"),
        (["--wait=x"], "invalid float value"),
    ],
)
def test_what_only_a_gpu_has_is_refused_on_the_cpu(tmp_path, options, said):
    root = toy_project.make(tmp_path / "p", double={})
    done = groundspeed("run", *options, cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_place_is_one_gpu(project):
    assert [place.label for place in command._places("all", "cuda")] == ["GPU 0", "GPU 1"]
    assert isinstance(command._places(None, "cuda")[0], Place)


def test_workers_that_must_be_started_anew_are_told_of_once(project, monkeypatch, capsys):
    from groundspeed.measure import workers

    monkeypatch.setattr(workers, "supported", lambda: False)
    assert main(["--project", str(project), "run", "--only", "first", "--only", "second"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("each worker does its own")]
    assert said == ["each worker does its own imports, which takes longer: this system has no process handles"]
