"""Who may let a regression pass, what the policy changes, and what is said of wrong use."""

from __future__ import annotations

import pytest

from groundspeed.errors import UserError

ROW = "impls/double/triton_row.py"


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
