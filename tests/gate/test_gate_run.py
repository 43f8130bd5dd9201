"""The whole gate over scratch repositories: a change is committed, and the gate says what became of it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from groundspeed.errors import UserError

ROW = "impls/double/triton_row.py"


def test_a_slower_commit_fails_and_says_by_how_much(repo):
    repo.edit(ROW, "COST = 500", "COST = 530")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1
    assert result.report["result"] == "regressed"
    (finding, _) = result.findings(metric="device_cold")
    assert finding["verdict"] == "regressed" and finding["processes"] == 10
    assert finding["ratio"] == pytest.approx(1.06, abs=0.003)
    assert finding["low"] < finding["ratio"] < finding["high"]
    assert finding["file"] == ROW
    base = repo.git("rev-parse", "main")
    assert (
        finding["reproduce"] == f"groundspeed gate --base {base} --only double/triton_row --dtype float32 --shape N=64"
    )
    assert "✗ regressed" in result.output and "+6.0 %" in result.output and finding["reproduce"] in result.output


def test_only_what_is_touched_is_measured(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 500  # the same")
    repo.edit(ROW, "A row", "A row of numbers")
    repo.edit("impls/double/torch_eager.py", "COST = 1000", "COST = 1000.0")
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", engine=engine)
    assert result.status == 0
    assert [pair.name for request in engine.requests for pair in request.pairs] == ["torch_eager"]
    assert result.report["identical"] == 2  # comments and docstrings of the other file change no code
    assert result.report["compared"] == 2 * 7 and result.verdicts() == {"unchanged"}


def test_a_change_of_a_shared_file_reaches_what_uses_it(repo, fake_engine):
    repo.write("impls/_shared.py", "SCALE = 1.05\n")
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", engine=engine)
    assert result.status == 1
    assert result.report["touched"] == [
        {"operator": "double", "implementation": "triton_row", "why": "it uses _shared.py"}
    ]


def test_the_worktree_is_head_without_a_commit(repo):
    repo.edit(ROW, "COST = 500", "COST = 600")
    assert repo.gate("--base", "main").status == 1
    assert repo.gate("--base", "HEAD").status == 1
    repo.write("impls/double/cupy_new.py", '"""New."""\nCOST = 1\n')
    assert repo.gate("--base", "main").findings(implementation="cupy_new", verdict="new")


def test_a_branch_is_compared_with_where_it_left_base(repo):
    """What base gained since is not the branch's doing."""
    repo.edit(ROW, "COST = 500", "COST = 501")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.edit(ROW, "COST = 500", "COST = 100")
    repo.commit("Faster on main")
    assert repo.gate("--base", "main", "--head", "topic").status == 0


@pytest.mark.parametrize(
    ("old", "new", "metric", "verdict", "status"),
    [
        ("COST = 500", "COST = 505", "device_cold", "unchanged", 0),
        ("COST = 500", "COST = 400", "device_cold", "improved", 0),
        ("COST = 500", "COST = 500\nPEAK = 1100000", "peak_memory", "regressed", 1),
        ("COST = 500", "COST = 500\nPEAK = 900000", "peak_memory", "improved", 0),
        ("COST = 500", "COST = 500\nERROR = 1e-5", "error", "regressed", 1),
        ("COST = 500", "COST = 250\nERROR = 1e-5", "error", "regressed", 1),
        ("COST = 500", "COST = 500\nSLOW_SHARE = 0.06", "device_cold_p99", "regressed", 1),
    ],
)
def test_every_metric_has_its_verdict(repo, old, new, metric, verdict, status):
    repo.edit(ROW, old, new)
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.verdicts(metric=metric) == {verdict}
    assert result.status == status
    if metric == "device_cold_p99":
        assert result.verdicts(metric="device_cold") == {"unchanged"}


@pytest.mark.parametrize(
    ("base", "head", "verdict", "status"),
    [
        ("", 'FAIL = ["build", "nvcc: no"]', "broken", 1),
        ("", 'FAIL = ["incorrect", "off by one"]', "broken", 1),
        ("", 'FAIL = ["error", "ModuleNotFoundError: nope"]', "broken", 1),  # a head that does not import
        ("", 'SKIP = "needs sm_100"', "removed", 1),
        ('SKIP = "needs sm_100"', "", "new", 0),
        ('FAIL = ["incorrect", "off by one"]', "", "fixed", 0),
        ('FAIL = ["build", "nvcc: no"]', "", "fixed", 2),  # a base that does not build
        ('SKIP = "no GPU"', 'SKIP = "no GPU here"', None, 2),  # nothing compared
        ('FAIL = ["crash", "SIGSEGV"]', 'FAIL = ["crash", "SIGSEGV again"]', "incomparable", 2),
    ],
)
def test_statuses(repo, base, head, verdict, status):
    repo.git("checkout", "-q", "main")
    repo.edit(ROW, "COST = 500", f"COST = 500\n{base}")
    repo.commit()
    repo.git("checkout", "-q", "-B", "topic")
    repo.write(ROW, f'"""A row."""\nfrom .. import _shared\nCOST = 500.5\n{head}\n')
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.verdicts() == ({verdict} if verdict else set())
    assert result.status == status


def test_a_vanished_implementation_fails(repo):
    (repo.root / ROW).unlink()
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1 and result.verdicts() == {"removed"}


def test_a_vanished_case_fails(repo):
    repo.edit("impls/double/spec.py", '({"N": 64}, {"N": 4096})', '({"N": 64},)')
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1
    assert [(f["dtype"], f["shape"]) for f in result.findings(verdict="removed")] == [("float32", "N=4096")]


def test_a_vanished_operator_fails(repo):
    shutil.rmtree(repo.root / "impls/double")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1 and len(result.findings(verdict="removed")) == 2


def test_a_changed_spec_judges_base_under_heads_with_the_tighter_tolerance(repo, fake_engine):
    repo.edit("impls/double/spec.py", "Tolerance(1e-5, 1e-6)", "Tolerance(1e-2, 1e-7)")
    repo.edit("impls/double/spec.py", "return 2 * x", "return x * 2")
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", engine=engine)
    assert result.status == 0 and any("tighter tolerance" in remark for remark in result.report["remarks"])
    tolerance = engine.requests[0].pairs[0].tolerance["float32"]
    assert (tolerance.rtol, tolerance.atol, tolerance.norm_bound) == (1e-5, 1e-7, 1e-5)
    assert {pair.name for pair in engine.requests[0].pairs} == {"torch_eager", "triton_row"}


def test_a_new_shape_is_measured_on_both_sides_and_the_old_ones_are_left_out(repo, fake_engine):
    repo.edit("impls/double/spec.py", '{"N": 4096})', '{"N": 4096}, {"N": 8192})')
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", engine=engine)
    assert result.status == 0 and result.report["identical"] == 2 * 2
    measured = {case.shape_label for request in engine.requests for pair in request.pairs for case in pair.cases}
    assert measured == {"N=8192"} and result.verdicts() == {"unchanged"}


def test_a_spec_that_cannot_be_used_is_broken(repo):
    repo.edit("impls/double/spec.py", "def inputs", "raise RuntimeError('no')\ndef inputs")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1 and result.verdicts() == {"broken"}


def test_a_harness_change_measures_everything_and_says_so(repo, fake_engine):
    repo.write("groundspeed/measure/timers/cupti.py", "x = 1\n")
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", engine=engine)
    assert result.status == 0 and result.report["compared"] == 2 * 2 * 7
    assert any("harness changed" in remark for remark in result.report["remarks"])


def test_a_renamed_implementation_is_followed(repo):
    repo.git("mv", ROW, "impls/double/triton_line.py")
    repo.edit("impls/double/triton_line.py", "COST = 500", "COST = 600")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1 and result.verdicts(metric="device_cold") == {"regressed"}
    assert {f["base_implementation"] for f in result.report["findings"]} == {"triton_row"}


def test_a_pure_rename_has_nothing_to_compare_but_is_no_removal(repo):
    repo.git("mv", ROW, "impls/double/triton_line.py")
    repo.commit()
    result = repo.gate("--base", "main")
    assert not result.findings(verdict="removed")


def test_a_new_implementation_is_neutral_but_must_run(repo):
    repo.write("impls/double/cupy_new.py", '"""New."""\nCOST = 9\n')
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 0 and result.verdicts() == {"new"}
    repo.write("impls/double/cupy_new.py", '"""New."""\nFAIL = ["incorrect", "wrong"]\n')
    repo.commit()
    assert repo.gate("--base", "main").verdicts() == {"broken"}


def test_an_autotuner_that_chose_differently_is_named(repo):
    repo.edit(ROW, "COST = 500", 'COST = 600\nTUNED = "BLOCK=64"')
    repo.commit()
    repo.git("checkout", "-q", "-B", "older")
    repo.edit(ROW, 'COST = 600\nTUNED = "BLOCK=64"', 'COST = 500\nTUNED = "BLOCK=128"')
    repo.commit()
    result = repo.gate("--base", "topic", "--head", "older")
    assert result.verdicts(metric="device_cold") == {"improved"}
    causes = {f["cause"] for f in result.findings(metric="device_cold")}
    assert causes == {"the autotuner chose BLOCK=128 (base: BLOCK=64)"}


# Fail closed.


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


# A/A.


def test_aa_measures_identical_code(repo, fake_engine):
    engine = fake_engine()
    result = repo.gate("--aa", engine=engine)
    assert result.status == 0 and result.report["aa"] and result.report["compared"] == 2 * 2 * 7
    pair = engine.requests[0].pairs[0]
    assert pair.base.tree != pair.head.tree and pair.share


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


# Acceptance.


def test_a_trailer_accepts_a_regression_and_is_shown(repo):
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit("Save memory\n\nPerf-Accepted: double/triton_row halves the memory")
    result = repo.gate("--base", "main")
    assert result.status == 0
    (finding, *_) = result.findings(verdict="regressed")
    assert finding["accepted"].startswith("halves the memory (commit ")
    assert "accepted: halves the memory" in result.output


def test_a_trailer_of_another_series_or_without_reason_accepts_nothing(repo):
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit("Slow\n\nPerf-Accepted: double/torch_eager because\nPerf-Accepted: double/triton_row")
    result = repo.gate("--base", "main")
    assert result.status == 1 and any("ignored" in remark for remark in result.report["remarks"])


def test_an_allow_list_accepts_until_its_date(repo):
    repo.edit(ROW, "COST = 500", "COST = 600")
    entry = '[[accepted]]\nseries = "double/*"\nmetric = "*"\nuntil = {}\nreason = "driver"\n'
    repo.write("perf-accepted.toml", entry.format("9999-01-01"))
    assert repo.gate("--base", "main").status == 0
    repo.write("perf-accepted.toml", entry.format("2020-01-01"))
    result = repo.gate("--base", "main")
    assert result.status == 1 and any("expired on 2020-01-01" in remark for remark in result.report["remarks"])


def test_a_fix_of_a_base_that_did_not_build_can_be_answered_for(repo):
    repo.git("checkout", "-q", "main")
    repo.edit(ROW, "COST = 500", 'FAIL = ["build", "nvcc"]')
    repo.commit()
    repo.git("checkout", "-q", "-B", "topic")
    repo.edit(ROW, 'FAIL = ["build", "nvcc"]', "COST = 500")
    repo.commit("Mend\n\nPerf-Accepted: double/triton_row mends the build")
    assert repo.gate("--base", "main").status == 0


# Policy.


def test_base_decides_the_policy(repo):
    repo.write("pyproject.toml", "[tool.groundspeed.gate.thresholds]\ndevice_cold = 1.0\n")
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit()
    result = repo.gate("--base", "main")
    assert result.status == 1 and any("base's was applied" in remark for remark in result.report["remarks"])


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        (
            "[tool.groundspeed.gate]\n"
            "thresholds = { device_cold = 0.5, device_cold_p99 = 0.5, device_hot = 0.5, call = 0.5 }",
            0,
        ),
        ('[[tool.groundspeed.gate.override]]\nimplementation = "triton_*"\nthreshold = 0.5\n', 0),
        ('[[tool.groundspeed.gate.override]]\nimplementation = "cuda_*"\nthreshold = 0.5\n', 1),
        ('[[tool.groundspeed.gate.override]]\noperator = "double"\nreport_only = true\n', 0),
        ('[tool.groundspeed.gate]\nmetrics = ["peak_memory", "error"]\n', 0),
    ],
)
def test_policy_of_base_is_applied(repo, policy, status):
    repo.git("checkout", "-q", "main")
    repo.write("pyproject.toml", policy)
    repo.commit()
    repo.git("checkout", "-q", "-B", "topic")
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit()
    assert repo.gate("--base", "main").status == status


# Wrong use.


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ((), "--base"),
        (("--base", "main", "--only", "nothing"), "matches no operator"),
        (("--base", "main", "--budget", "soon"), "no duration"),
        (("--base", "main", "--threshold", "device_cold=3"), "0.03 is 3 %"),
        (("--base", "main", "--threshold", "devise=0.1"), "unknown metric"),
        (("--base", "main", "--config", "absent.toml"), "no such file"),
        (("--base", "main", "--save-noise"), "--aa"),
        (("--base", "--exec=x"), "is no revision"),
    ],
)
def test_wrong_use_is_a_user_error(repo, typed, message):
    repo.edit(ROW, "COST = 500", "COST = 501")
    typed = [f"{typed[0]}={typed[1]}"] if typed[1:] and typed[1].startswith("--") else typed
    with pytest.raises(UserError, match=message):
        repo.gate(*typed)


def test_an_unknown_revision_is_status_two_with_a_report(repo):
    result = repo.gate("--base", "nowhere")
    assert result.status == 2 and "no such commit" in result.report["summary"]


def test_list_says_what_would_be_measured_and_measures_nothing(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 501")
    engine = fake_engine()
    result = repo.gate("--base", "main", "--list", engine=engine)
    assert result.status == 0 and not engine.requests
    assert "double/triton_row  2 cases  its file changed" in result.output
