"""The whole gate over scratch repositories: a change is committed, and the gate says what became of it."""

from __future__ import annotations

import shutil

import pytest

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


def test_a_second_step_is_vouched_for_and_tuned_anew(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 530")
    repo.commit()
    engine = fake_engine()
    repo.gate("--base", "main", engine=engine)
    first, fresh = engine.requests
    assert not first.vouched and fresh.vouched  # the first process of the first step judges in full
    assert first.tunings.parent == fresh.tunings.parent and first.tunings != fresh.tunings
    assert not first.tunings.parent.exists()


def test_what_a_run_cost_is_told_by_step_and_phase(repo, fake_engine):
    repo.edit(ROW, "COST = 500", "COST = 530")
    repo.commit()
    result = repo.gate("--base", "main", engine=fake_engine(phases={"start": 0.5, "time": 1.25, "exit": 0.01}))
    first, fresh = result.report["steps"]
    assert (first["step"], first["processes"], fresh["step"], fresh["processes"]) == ("first", 5, "fresh", 10)
    assert first["phases"] == {"start": 2.5, "time": 6.25, "exit": pytest.approx(0.05)}
    line = " ".join(result.output[result.output.index("took ") :].split())
    assert "5 processes 0.0 s (time 6.2, start 2.5); 10 fresh processes 0.0 s (time 12.5, start 5.0)" in line


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


def test_processes_that_disagree_are_ambiguous_with_what_to_type_and_fail_nothing(repo):
    repo.edit(ROW, "COST = 500", "COST = 500\nJITTER = 0.3")
    repo.commit()
    result = repo.gate("--aa", "--only", "double/triton_row", "--seed", "4")
    disagreeing = [f for f in result.findings(metric="device_cold") if "processes disagree" in f["reason"]]
    assert result.status == 0 and disagreeing
    for finding in disagreeing:
        assert finding["verdict"] == "ambiguous" and finding["processes"] == 10
        assert finding["low"] < 1 < finding["high"] and finding["p"] > 0.05
        shape = finding["shape"]
        only = f"--only double/triton_row --dtype float32 --shape {shape}"
        assert (
            f"type, twice, for its noise floor: groundspeed gate --aa --save-noise {only} (or raise"
            in finding["reason"]
        )
        assert repo.gate("--aa", "--save-noise", *only.split()).report["compared"] == 7


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


@pytest.mark.parametrize("path", ["measure/timers/cupti.py", "records.py", "analysis/stats.py", "gate/paired.py"])
def test_a_harness_change_measures_everything_and_says_so(repo, fake_engine, path):
    repo.write(f"groundspeed/{path}", "x = 1\n")
    repo.commit()
    engine = fake_engine()
    result = repo.gate("--base", "main", "--allow-untouched", engine=engine)
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


@pytest.mark.parametrize(("typed", "said"), [(["--shape", "N=64"], "1 suspect again"), ([], "2 suspects again")])
def test_what_is_counted_is_one_or_many(repo, typed, said):
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit()
    assert f"    {said}, in 10 fresh processes" in repo.gate("--base", "main", *typed).errors


def test_a_list_of_one_says_so(repo):
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit()
    listed = repo.gate("--base", "main", "--list", "--shape", "N=64").output
    assert "  1 case  " in listed and "1 implementation to measure, 0 cases identical in code" in listed
