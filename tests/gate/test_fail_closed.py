"""What cannot be compared is no pass: every way in which a gate could be green for want of a measurement."""

from __future__ import annotations

import subprocess

import pytest

from groundspeed.errors import UserError

ROW = "impls/double/triton_row.py"


def test_an_empty_diff_could_not_be_measured(repo):
    result = repo.gate("--base", "main")
    assert result.status == 2 and "empty diff" in result.report["summary"]
    repo.commit("Nothing")
    assert repo.gate("--base", "main", "--head", "topic").status == 2


def test_a_change_that_touches_nothing_passes_only_where_that_was_allowed(repo):
    repo.write("README.md", "words")
    repo.commit()
    assert repo.gate("--base", "main").status == 2
    result = repo.gate("--base", "main", "--allow-untouched")
    assert result.status == 0 and "touches nothing" in result.report["summary"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--shape", "zz"), "no case of double in tier full matches --shape zz: there are N=64; N=4096"),
        (("--dtype", "float16"), "matches --dtype float16: there are float32 N=64; float32 N=4096"),
    ],
)
def test_a_pattern_that_no_touched_case_matches_is_named_with_what_there_is(repo, typed, said):
    repo.edit(ROW, "COST = 500", "COST = 501")
    result = repo.gate("--base", "HEAD", "--allow-untouched", *typed)
    assert result.status == 2 and said in result.report["summary"]
    listed = repo.gate("--base", "HEAD", "--list", *typed)
    assert listed.status == 2 and said in listed.output


@pytest.mark.parametrize("lost", [0, 3])
def test_a_gpu_lost_half_way_is_no_pass(repo, fake_engine, lost):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    result = repo.gate("--base", "main", engine=fake_engine(lose_after=lost))
    assert result.status == 2
    assert {entry["reason"] for entry in result.report["unmeasured"]} == {"the GPU has fallen off the bus"}


def test_a_gpu_lost_among_the_suspects_is_no_pass(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit()
    result = repo.gate("--base", "main", engine=fake_engine(lose_after=7))
    assert result.status == 2
    assert all("suspect in device_cold" in entry["reason"] for entry in result.report["unmeasured"])


def test_two_runners_mixed_are_no_pass(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    result = repo.gate("--base", "main", engine=fake_engine(mix_at=3))
    assert result.status == 2 and "two runners" in result.report["summary"]


def test_a_benchmark_that_was_never_run_is_no_pass(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    result = repo.gate("--base", "main", engine=fake_engine(drop=("triton_row",)))
    assert result.status == 2 and "0 of 5 processes" in result.report["unmeasured"][0]["reason"]


@pytest.mark.parametrize(("base", "head", "named"), [(30, 3, "3 samples of head"), (3, 30, "3 samples of base")])
def test_calls_too_few_for_a_median_are_no_pass(repo, base, head, named):
    """Each of a call that takes long: they would have no verdict, and nothing would say so."""
    repo.edit(ROW, "COST = 500", f"COST = 500\nCALLS = {base}")
    repo.git("commit", "--all", "--message", "base")
    repo.git("branch", "--force", "main")
    repo.edit(ROW, f"CALLS = {base}", f"CALLS = {head}")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 2
    (reason,) = {entry["reason"] for entry in result.report["unmeasured"]}
    assert named in reason and "expected 8" in reason


def test_a_quantity_that_base_never_had_has_not_vanished(repo):
    repo.edit(ROW, "COST = 500", "COST = 500\nCALLS = 0")
    repo.git("commit", "--all", "--message", "base")
    repo.git("branch", "--force", "main")
    repo.edit(ROW, "CALLS = 0", "CALLS = 30")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 0 and not result.report["unmeasured"]


def test_a_shallow_clone_without_the_base_is_no_pass(repo, tmp_path):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    shallow = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", "--branch", "topic", f"file://{repo.root}", str(shallow)], check=True
    )
    base = repo.git("rev-parse", "main")
    repo.root = shallow
    result = repo.gate("--base", base)
    assert result.status == 2
    assert "git fetch --unshallow" in result.report["summary"] and "fetch-depth: 0" in result.report["summary"]


def test_a_spent_budget_is_no_pass(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    result = repo.gate("--base", "main", "--budget", "0.000001s")
    assert result.status == 2 and "budget" in result.report["unmeasured"][0]["reason"]


def test_a_fault_of_the_gate_is_status_two(repo):
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()

    def broken(request):
        raise ZeroDivisionError("a bug")

    result = repo.gate("--base", "main", engine=broken)
    assert result.status == 2 and "ZeroDivisionError" in result.report["summary"]


def test_both_failing_and_unmeasured_is_a_failure(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 900")
    repo.edit("impls/double/torch_eager.py", "COST = 1000", "COST = 1001")
    repo.commit()
    assert repo.gate("--base", "main", engine=fake_engine(drop=("torch_eager",))).status == 1


def test_aa_measures_identical_code(repo, fake_engine):
    engine = fake_engine()
    result = repo.gate("--aa", engine=engine)
    assert result.status == 0 and result.report["aa"] and result.report["compared"] == 2 * 2 * 7
    pair = engine.requests[0].pairs[0]
    assert pair.base.tree != pair.head.tree


def test_aa_leaves_noise_floors_that_the_next_gate_uses(repo, fake_engine, monkeypatch):
    monkeypatch.setattr("groundspeed.gate.gate_command.machine_name", lambda device: "cpu-fake")
    times = iter(range(100))
    monkeypatch.setattr("groundspeed.gate.gate_command.now", lambda: f"run{next(times)}")
    for _ in range(2):
        assert repo.gate("--aa", "--save-noise", engine=fake_engine(noise=0.3)).status in (0, 1)
    assert len(list((repo.root / "results/cpu-fake/noise").glob("*.jsonl"))) == 2
    repo.edit(ROW, "COST = 500", "COST = 900")
    repo.commit("Slower", "impls")
    result = repo.gate("--base", "main", "--head", "topic")
    cold = result.findings(metric="device_cold")
    assert {f["gateable"] for f in cold} == {False} and {f["verdict"] for f in cold} == {"ambiguous"}


def test_a_report_that_cannot_be_written_is_status_two_and_costs_no_other(repo, capsys):
    repo.edit(ROW, "COST = 500", "COST = 900")
    repo.commit()
    lost, kept = repo.root / "asv.conf.json" / "gate.md", repo.root.parent / "gate.xml"
    with pytest.raises(UserError, match=r"gate\.md cannot be written"):
        repo.gate("--base", "main", "--markdown", str(lost), "--junit", str(kept))
    assert "regressed" in capsys.readouterr().out and "regressed" in kept.read_text()
    assert (repo.root.parent / "report.json").is_file()
