"""`groundspeed run --fleet` and `gate --fleet`, as they are typed, on a Ray cluster of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import msgspec
import pytest

from groundspeed.fleet.ledger import read_ledgers
from groundspeed.records import SELECTION_FILE, find_records
from tests.cli import toy_project
from tests.cli.toy_project import ADD, groundspeed
from tests.fleet.conftest import needs_ray, stations
from tests.fleet.test_shards import commit, without_times
from tests.gate.conftest import Repo
from tests.gate.test_gate_cpu import EAGER, POLICY, SPEC
from tests.paths import python_path

ray = [needs_ray, pytest.mark.slow]


@pytest.fixture
def toy(tmp_path):
    files = {"torch_add": ADD}
    root = toy_project.make(tmp_path / "p", one=files, two={}, three=files, four={}, five={"spec": "SPEC = 3"})
    commit(root)
    return root


def options(operators):
    return [word for operator in operators for word in ("--only", operator)]


class TestRun:
    pytestmark = ray

    def test_it_leaves_the_records_of_a_run_here_although_a_station_dies(self, cluster, driver, toy, tmp_path):
        names = ("one", "two", "three")
        here = groundspeed(
            "run", *options(names), "--results", str(tmp_path / "here"), cwd=toy, GROUNDSPEED_DEVICE="cpu"
        )
        assert here.returncode == 0, here.stderr
        words = ["run", *options([*names, "five"]), "--fleet", cluster.address, "--pull-request", "41"]
        run = driver("-m", "groundspeed", *words, cwd=toy)
        run.wait_for(": begun on")
        os.kill(stations()[0], signal.SIGKILL)
        assert run.end() == 2, "five has no spec"
        problem = "impls/five/spec.py: SPEC is a int, expected an Operator"
        assert re.search(rf"^groundspeed: cpu-\S+: five: {problem}$", run.said, re.MULTILINE), run.said
        assert len(re.findall(r"^  moved: .* from .+ to .+: its process died$", run.said, re.MULTILINE)) == 1, run.said
        assert re.search(r"^  [\d.]+ GPU-s on 1 GPU: .* in what had to be begun again", run.said, re.MULTILINE)
        assert "torch_add" in run.said and "Traceback" not in run.said
        mine, fleets = find_records(tmp_path / "here"), find_records(toy / "results")
        assert list(map(without_times, mine)) == list(map(without_times, fleets)) and len(mine) == 3
        (kept,) = (toy / "results").rglob(SELECTION_FILE)
        assert msgspec.json.decode(kept.read_bytes())["only"] == [*names, "five"]
        lines = read_ledgers(toy / "results")
        assert {line.pull_request for line in lines} == {"41"} and {line.kind for line in lines} == {"run"}
        costs = groundspeed("costs", cwd=toy)
        assert costs.returncode == 0 and re.search(r"^#41 +[\d.]+$", costs.stdout, re.MULTILINE), costs.stderr

    def test_it_goes_on_where_it_was_ended(self, cluster, driver, toy):
        # One more than there are stations: when the first has ended, something is left to be interrupted.
        names = ("one", "two", "three", "four")
        words = ["run", *options(names), "--dtype", "float32", "--fleet", cluster.address]
        run = driver("-m", "groundspeed", *words, cwd=toy)
        run.wait_for(": measured in")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130 and "Traceback" not in run.said, run.said
        before = {path: path.stat().st_mtime_ns for path in find_records(toy / "results")}
        again = re.search(r"^groundspeed: kept .*; to go on, type: .*groundspeed (run .*)$", run.said, re.MULTILINE)[1]
        assert f"--fleet {cluster.address}" in again and before
        rest = driver("-m", "groundspeed", *again.split(), cwd=toy)
        assert rest.end() == 0, rest.said
        after = find_records(toy / "results")
        assert len(after) == len(names) and len({path.parent for path in after}) == 1
        assert all(path.stat().st_mtime_ns == when for path, when in before.items())


@pytest.fixture
def project(tmp_path, capsys):
    """Two operators that compute, of which the topic makes one slow."""
    (tmp_path / "repo").mkdir()
    repo = Repo(tmp_path / "repo", capsys)
    repo.write("asv.conf.json", "{}")
    for operator in ("first", "second"):
        repo.write(f"impls/{operator}/spec.py", SPEC)
        repo.write(f"impls/{operator}/torch_eager.py", EAGER)
    repo.write("pyproject.toml", POLICY)
    repo.commit("Begin")
    repo.git("checkout", "-qb", "topic")
    repo.edit("impls/first/torch_eager.py", "return x.sum(1)", "return sum(x.sum(1) for _ in range(8)) / 8")
    repo.edit("impls/second/torch_eager.py", "return x.sum(1)", "return x.sum(dim=1)")
    repo.commit("Make one slow")
    return repo


@pytest.mark.quiet
@pytest.mark.slow
@needs_ray
def test_a_gate_finds_on_a_fleet_what_became_slow(cluster, driver, project, tmp_path):
    words = [
        "gate",
        "--base",
        "main",
        "--head",
        "topic",
        "--fleet",
        cluster.address,
        "--json",
        str(tmp_path / "g.json"),
    ]
    gate = driver("-m", "groundspeed", *words, cwd=project.root, GITHUB_REF="refs/pull/77/merge")
    assert gate.end() == 1, gate.said
    report = json.loads((tmp_path / "g.json").read_text())
    found = {(f["operator"], f["verdict"]) for f in report["findings"] if f["metric"] == "device_hot"}
    assert ("first", "regressed") in found and "second" in {operator for operator, _ in found}
    assert not report["unmeasured"] and report["machine"].startswith("cpu-")
    assert sum(step["processes"] for step in report["steps"]) >= 20, "five of each, and ten more of a suspect"
    assert any(remark.startswith("cost: ") and "first" in remark for remark in report["remarks"])
    lines = read_ledgers(project.root / "results")
    assert {line.pull_request for line in lines} == {"77"} and {line.kind for line in lines} == {"gate"}
    kept = [line.operator for line in lines if line.outcome == "kept"]
    assert sorted(kept) == ["first", "second"], "all processes of an operator at one station, handed out as one piece"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--fleet-without", "h"], "--fleet-without goes with --fleet; add --fleet auto, or leave it out"),
        (["run", "--fleet", "auto", "--shard", "1/2"], "--fleet shares the work out by itself; leave --shard out"),
        (["run", "--fleet", "auto", "--gpus", "all"], "--fleet shares the work out by itself; leave --gpus out"),
        (["gate", "--base", "main", "--fleet-machine", "m"], "--fleet-machine goes with --fleet"),
        (["run", "--fleet", "127.0.0.1:1"], "--fleet 127.0.0.1:1: no cluster answers there"),
        (["run", "--fleet", "ray://127.0.0.1:1"], "--fleet ray://127.0.0.1:1: no cluster answers there"),
        (["run", "--fleet", "somewhere"], "expected auto, ray://HOST:PORT, or HOST:PORT"),
        (["costs"], "no fleet has measured anything"),
    ],
)
@needs_ray
def test_wrong_use_is_one_line(toy, words, said):
    done = groundspeed(*words, cwd=toy, GROUNDSPEED_DEVICE="cpu")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("groundspeed: ") and said in line


@pytest.mark.parametrize("command", [["run"], ["gate", "--base", "HEAD"]])
def test_without_ray_the_line_says_what_to_type(toy, command):
    program = "import sys; sys.modules['ray'] = None; from groundspeed.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "--fleet", "auto"],
        cwd=toy,
        env={**os.environ, "PYTHONPATH": python_path(), "GROUNDSPEED_DEVICE": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert (
        done.stderr == f"groundspeed: --fleet needs ray; type: {sys.executable} -m pip install 'groundspeed[fleet]'\n"
    )


def test_ray_is_imported_for_a_fleet_alone(toy):
    program = (
        "import sys; sys.argv[1:] = []; from groundspeed.cli import main; "
        "main(['run', '--only', 'two', '--shard', '2/2']); main(['list']); "
        "import groundspeed.fleet.running, groundspeed.fleet.gating; assert 'ray' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=toy,
        env={**os.environ, "PYTHONPATH": python_path(), "GROUNDSPEED_DEVICE": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
