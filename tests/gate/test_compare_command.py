"""``groundspeed compare`` over stored results: what A and B may be, what is printed, and the exit status."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from groundspeed.errors import UserError
from groundspeed.gate import compare_command
from groundspeed.records import Environment, Footer, Header, Measurement, Record, record_path, write_record


@pytest.fixture
def compare(repo, capsys):
    def typed(*arguments):
        parser = argparse.ArgumentParser()
        parser.add_argument("--project", default=repo.root)
        compare_command.add_arguments(parser)
        status = compare_command.run(parser.parse_args(arguments))
        return status, capsys.readouterr().out

    return typed


def store(repo, commit, scale, run_id, machine="nvidia-h200", dirty=False):
    """One record with two implementations, the second ``scale`` times as slow as it was."""
    random = np.random.default_rng(len(run_id))
    environment = Environment(device="cuda", device_name="H200", python="3.12", os="linux")
    measurements = tuple(
        Measurement(
            implementation=name,
            dtype="float32",
            shape={"N": 64},
            status="ok",
            timer="cupti",
            samples={"device_cold": (cost * random.normal(1, 0.002, 30)).tolist()},
        )
        for name, cost in (("torch_eager", 1000.0), ("triton_row", 500.0 * scale))
    )
    header = Header(
        run_id=run_id,
        operator="double",
        machine=machine,
        started="",
        environment=environment,
        commit=commit,
        dirty=dirty,
    )
    path = record_path(repo.root / "results", machine, run_id, "double")
    write_record(path, Record(header, measurements, Footer(2)))
    return path


def test_two_commits(repo, compare):
    first = repo.git("rev-parse", "HEAD")
    second = repo.commit("Slower")
    store(repo, first, 1.0, "run1")
    store(repo, second, 1.2, "run2")
    status, output = compare("main", "HEAD")
    assert status == 0
    assert "✗ regressed" in output and "double/triton_row float32 N=64 · device_cold" in output
    assert "certainty medium" in " ".join(output.split()) and "1 regressed, 1 unchanged" in output
    assert compare("main", "HEAD", "--fail")[0] == 1
    assert compare("HEAD", "main", "--fail")[0] == 0


def test_two_machines_and_the_latest(repo, compare):
    commit = repo.git("rev-parse", "HEAD")
    store(repo, commit, 1.0, "run1")
    store(repo, commit, 0.5, "run2", machine="nvidia-a100")
    for a, b in (
        ("nvidia-h200:HEAD", "nvidia-a100:HEAD"),
        ("run1", "run2"),
        ("nvidia-h200:latest", "nvidia-a100:latest"),
    ):
        status, output = compare(a, b)
        assert status == 0 and "✓ improved" in output and "machines differ: nvidia-a100, nvidia-h200" in output


def test_files_and_json_output(repo, compare, tmp_path):
    commit = repo.git("rev-parse", "HEAD")
    a, b = store(repo, commit, 1.0, "run1"), store(repo, commit, 2.0, "run2")
    out = tmp_path / "out.json"
    assert compare(str(a), str(b), "--json", str(out))[0] == 0
    verdicts = {c["series"]["implementation"]: c["verdict"] for c in json.loads(out.read_text())["comparisons"]}
    assert verdicts == {"torch_eager": "unchanged", "triton_row": "regressed"}
    for typed in ((str(a.parent), str(b.parent)), ("run1", "run2")):
        assert "1 regressed" in compare(*typed)[1]


def test_records_of_a_changed_worktree_stand_for_no_commit(repo, compare):
    commit = repo.git("rev-parse", "HEAD")
    store(repo, commit, 1.0, "run1", dirty=True)
    with pytest.raises(UserError, match="no results of commit"):
        compare("HEAD", "HEAD")


def test_results_without_anything_in_common_are_status_two(compare, tmp_path):
    for name in ("a", "b"):
        document = {"commit_hash": name * 40, "params": {}, "results": {f"time_{name}": 1.0}, "version": 1}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    status, output = compare(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert status == 2 and "nothing could be compared" in output


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("nowhere", "HEAD"), "neither a file, a stored run nor a commit"),
        (("nvidia-b200:HEAD", "HEAD"), "no results of a machine 'nvidia-b200'"),
        (("HEAD", "HEAD"), "no results of commit"),
        (("latest", "HEAD"), "no records are stored"),
        (("HEAD", "HEAD", "--threshold", "5"), "0.03 is 3 %"),
    ],
)
def test_wrong_use_is_named(compare, typed, message):
    with pytest.raises(UserError, match=message):
        compare(*typed)


def test_a_damaged_record_is_a_remark_not_the_end(repo, compare):
    commit = repo.git("rev-parse", "HEAD")
    store(repo, commit, 1.0, "run1")
    damaged = repo.root / "results/nvidia-h200/records/run1/other.jsonl.gz"
    damaged.write_bytes(b"no gzip")
    status, output = compare("HEAD", "HEAD")
    assert status == 0 and "note: " in output and "other.jsonl.gz" in output.replace("\n      ", "")
