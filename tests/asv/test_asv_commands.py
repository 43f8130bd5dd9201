"""asv's own commands over commits, the sweep replaced by one that records what implementation files claim.

The claim makes every number predictable: a value filed under another implementation, dtype, shape or commit shows.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asv.scratch import ROOT, ResultFile, Scratch, make_scratch

QUESTIONS = ("device_time.{}.cold", "device_time.{}.hot", "call_time.{}", "peak_memory.{}", "error.{}", "first_call.{}")


@pytest.fixture
def project(tmp_path: Path) -> Scratch:
    project = make_scratch(tmp_path, ("relu", "softmax"))
    shutil.copy(ROOT / "tests/asv/fake_measure.py", project.root / "groundspeed/fake_measure.py")
    with (project.root / "groundspeed/session.py").open("a") as session:
        session.write("\n\nfrom groundspeed.fake_measure import measure_operator\n")
    return project


def two_commits(project: Scratch) -> tuple[str, str]:
    """The second plants triton_fast, removes triton_row and doubles the baseline."""
    project.implementation("softmax", "triton_row", claim=500)
    first = project.commit("first")
    project.implementation("softmax", "triton_fast", claim=100)
    project.implementation("softmax", "torch_eager", claim=2000)
    project.remove("impls/softmax/triton_row.py")
    return first, project.commit("second")


def result(project: Scratch, commit: str) -> ResultFile:
    (path,) = project.root.glob(f"results/*/{commit[:8]}-*.json")
    return ResultFile.read(path)


def cold(project: Scratch, commit: str, operator: str = "softmax") -> dict[tuple[str, ...], float]:
    """Nanoseconds, rounded: the fake's eleven samples have the claim plus five as their median."""
    column = result(project, commit).column(f"device_time.{operator}.cold", "result")
    return {
        key: value if value is None or math.isnan(value) else round(1e9 * value - 5) for key, value in column.items()
    }


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


FULL = {"GROUNDSPEED_TIER": "full"}


def test_a_plain_run_on_a_fresh_runner_asks_nothing_and_saves_under_the_machines_name(project: Scratch) -> None:
    _, head = two_commits(project)
    project.asv("run", **FULL)
    (path,) = project.result_files()
    machine = path.parent.name
    assert machine.startswith(("cpu-", "nvidia-"))
    assert path.name.startswith(f"{head[:8]}-groundspeed-py3.")
    described = json.loads((path.parent / "machine.json").read_text())
    assert described["machine"] == machine
    for file in [path, path.parent / "machine.json", project.root / "results/benchmarks.json"]:
        assert "existing" not in file.name
        assert "bin/python" not in file.read_text()
        assert str(project.root) not in file.read_text()
    assert {record.header.commit for record in project.records()} == {head}
    assert len({record.header.run_id for record in project.records()}) == 1  # the operators belong to one run


def test_one_sweep_an_operator_answers_every_question(project: Scratch) -> None:
    _, head = two_commits(project)
    project.asv("run", **FULL)
    assert sorted(project.sweeps()) == [f"{head} relu", f"{head} softmax"]
    values = result(project, head)
    for operator in ("relu", "softmax"):
        for question in QUESTIONS:
            column = values.column(question.format(operator), "result")
            assert column
            assert all(value is not None and not is_nan(value) for value in column.values()), question
    assert set(values.column("peak_memory.relu", "result").values()) == {4096}
    assert set(values.column("error.relu", "result").values()) == {1e-4}
    assert list(values.column("first_call.relu", "result").values()) == pytest.approx([4e-3] * 4)


def test_each_commits_files_are_measured_under_todays_lists(project: Scratch) -> None:
    first, second = two_commits(project)
    project.asv("run", f"{first}^!", **FULL)
    project.asv("run", f"{first}..{second}", **FULL)
    old, new = cold(project, first), cold(project, second)
    for dtype in ("float32", "float16"):
        for n in (1024, 4096):
            at = (dtype, f"N={n}")
            assert old["torch_eager", *at] == 1000 * n
            assert new["torch_eager", *at] == 2000 * n
            assert is_nan(old["triton_fast", *at])  # n/a: not at that commit
            assert new["triton_fast", *at] == 100 * n
    assert not any(name == "triton_row" for name, *_ in {**old, **new})  # not among today's files
    assert sorted(record.header.commit for record in project.records()) == sorted([first, first, second, second])


def test_a_past_spec_and_a_past_harness_are_not_used(project: Scratch) -> None:
    spec, session = project.root / "impls/softmax/spec.py", project.root / "groundspeed/session.py"
    today = spec.read_text(), session.read_text()
    spec.write_text("raise SystemExit('the old spec was used')\n")
    session.write_text("raise SystemExit('the old harness was used')\n")
    first = project.commit("a spec and a harness of another time")
    spec.write_text(today[0])
    session.write_text(today[1])
    project.commit("today's")
    project.asv("run", f"{first}^!", "--bench", "softmax", **FULL)
    assert cold(project, first)["torch_eager", "float32", "N=1024"] == 1000 * 1024


def test_what_is_not_committed_is_not_measured_and_does_not_shift_a_row(project: Scratch) -> None:
    _, head = two_commits(project)
    project.implementation("softmax", "torch_affine", claim=7)  # sorts between the baseline and triton_fast
    project.asv("run", "--bench", "softmax", **FULL)
    column = cold(project, head)
    assert is_nan(column["torch_affine", "float32", "N=1024"])
    assert column["torch_eager", "float32", "N=1024"] == 2000 * 1024
    assert column["triton_fast", "float32", "N=1024"] == 100 * 1024


def test_bench_narrows_to_an_operator_and_to_a_question(project: Scratch) -> None:
    _, head = two_commits(project)
    output = project.asv("run", "--bench", "softmax", **FULL)
    assert project.sweeps() == [f"{head} softmax"]
    assert "relu" not in output
    output = project.asv("run", "--bench", "device_time", "--dry-run", **FULL)
    assert "device_time.relu.cold" in output
    assert "call_time" not in output


def test_the_variables_narrow_the_sweep_and_the_rest_is_not_applicable(project: Scratch) -> None:
    _, head = two_commits(project)
    output = project.asv(
        "run",
        GROUNDSPEED_OPERATORS="softmax",
        GROUNDSPEED_IMPLEMENTATIONS="triton_*",
        GROUNDSPEED_DTYPES="float16",
        GROUNDSPEED_TIER="full",
    )
    assert project.sweeps() == [f"{head} softmax"]
    measured = {key for key, value in cold(project, head).items() if not is_nan(value)}
    assert measured == {("triton_fast", "float16", "N=1024"), ("triton_fast", "float16", "N=4096")}
    assert all(is_nan(value) for value in cold(project, head, "relu").values())
    assert "relu: left out by GROUNDSPEED_OPERATORS" in output
    assert "softmax: n/a are 2 of 4 cases (tier full, GROUNDSPEED_DTYPES)" in output
    assert "torch_eager (GROUNDSPEED_IMPLEMENTATIONS)" in output


def test_narrowed_by_bench_too_the_rest_keeps_its_numbers(project: Scratch) -> None:
    _, head = two_commits(project)
    project.asv("run", "--bench", "softmax", **FULL)
    before = cold(project, head)
    project.asv("run", "--bench", r"softmax.*\('triton_fast'", GROUNDSPEED_IMPLEMENTATIONS="triton_fast", **FULL)
    assert cold(project, head) == before
    assert project.records()[-1].header.ideas.keys() == {"triton_fast"}


def test_without_a_tier_the_cpu_measures_the_small_one(project: Scratch) -> None:
    _, head = two_commits(project)
    output = project.asv("run", "--bench", "softmax", GROUNDSPEED_DEVICE="cpu")
    measured = {key[1:] for key, value in cold(project, head).items() if not is_nan(value)}
    assert measured == {("float32", "N=1024")}
    assert "3 of 4 cases (tier small)" in output


def test_failed_and_skipped_are_told_apart_with_reasons_and_end_nothing(project: Scratch) -> None:
    project.implementation("softmax", "torch_wrong", claim="failed")
    project.implementation("softmax", "cuda_absent", claim="skipped")
    head = project.commit("head")
    output = project.asv("run", **FULL)
    column = cold(project, head)
    assert column["torch_wrong", "float32", "N=1024"] is None
    assert is_nan(column["cuda_absent", "float32", "N=1024"])
    assert column["torch_eager", "float32", "N=1024"] == 1000 * 1024
    assert "incorrect: expected 1, got 2" in output
    assert "no such back end here" in output
    assert cold(project, head, "relu")["torch_eager", "float32", "N=1024"] == 1000 * 1024


def test_a_sweep_that_breaks_is_one_line_and_the_other_operators_are_measured(project: Scratch) -> None:
    _, head = two_commits(project)
    output = project.asv("run", FAKE_BREAKS="softmax", **FULL)
    assert "softmax: the sweep ended with RuntimeError: the fake broke; for the traceback type: asv run" in output
    assert "Traceback" not in output
    assert set(result(project, head).column("call_time.softmax", "result").values()) == {None}
    assert cold(project, head, "relu")["torch_eager", "float32", "N=1024"] == 1000 * 1024
    loud = project.asv("run", "--verbose", "--dry-run", "--bench", "softmax", FAKE_BREAKS="softmax", **FULL)
    assert "Traceback" in loud


def test_a_broken_spec_is_one_line_and_the_other_operators_are_measured(project: Scratch) -> None:
    two_commits(project)
    project.write("impls/softmax/spec.py", "SPEC = Oprator()\n")
    head = project.git("rev-parse", "HEAD")
    output = project.asv("run", **FULL)
    assert [line for line in output.splitlines() if "Oprator" in line] == [
        f"·· softmax: {project.root}/impls/softmax/spec.py cannot be used: NameError: name 'Oprator' is not defined"
    ]
    assert cold(project, head, "relu")["torch_eager", "float32", "N=1024"] == 1000 * 1024


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"GROUNDSPEED_OPERATORS": "sofmax"}, "unknown operator 'sofmax': there are relu, softmax; did you mean"),
        ({"GROUNDSPEED_IMPLEMENTATIONS": "tritn_*"}, "no implementation matches 'tritn_*'"),
        ({"GROUNDSPEED_DTYPES": "fp16"}, "unknown dtype 'fp16': expected"),
        ({"GROUNDSPEED_TIER": "smal"}, "unknown tier 'smal': expected small, core, full; did you mean 'small'?"),
        ({"GROUNDSPEED_DEVICE": "gpu"}, "GROUNDSPEED_DEVICE is 'gpu', expected cuda or cpu"),
    ],
)
def test_a_typo_is_one_clear_line_and_measures_nothing(
    project: Scratch, variables: dict[str, str], expected: str
) -> None:
    two_commits(project)
    output = project.asv("run", expect=1, **variables)
    assert expected in output
    assert "Traceback" not in output
    assert project.sweeps() == []


def test_compare_continuous_show_and_publish_work_on_the_results(project: Scratch) -> None:
    first, second = two_commits(project)
    output = project.asv("continuous", "--bench", "softmax", first, second, expect=None, **FULL)
    assert "SOME BENCHMARKS HAVE CHANGED SIGNIFICANTLY" in output
    assert "PERFORMANCE DECREASED" in output  # the baseline was doubled
    changed = [
        line for line in output.splitlines() if "device_time.softmax.cold('torch_eager', 'float32', 'N=1024')" in line
    ]
    assert len(changed) == 1
    assert [cell.strip() for cell in changed[0].split("|")][1:5] == ["+", "1.02±0ms", "2.05±0ms", "2"]
    assert sorted(project.sweeps()) == sorted([f"{first} softmax", f"{second} softmax"])

    compared = project.asv("compare", first, second)
    row = next(line for line in compared.splitlines() if "cold('triton_fast', 'float32', 'N=1024')" in line)
    assert "n/a" in row
    assert "102±0" in row

    shown = project.asv("show", second)
    assert "device_time.softmax.cold" in shown
    assert first[:8] in project.asv("show")

    project.asv("publish")
    graphs = list((project.root / ".asv/html/graphs").rglob("device_time.softmax.cold.json"))
    plotted = [json.loads(path.read_text()) for path in graphs]
    assert any(len(series) == 2 for series in plotted)  # both commits, one series: nothing splits it


def test_spawned_and_forked_replays_give_what_the_direct_one_gives(project: Scratch) -> None:
    _, head = two_commits(project)
    project.asv("run", "--bench", "softmax", **FULL)
    direct = cold(project, head)
    project.result_files()[0].unlink()
    project.asv("run", "--bench", "softmax", "--launch-method", "forkserver", **FULL)
    assert cold(project, head) == direct


def test_the_machine_keeps_the_description_that_is_published(project: Scratch) -> None:
    _, head = two_commits(project)
    project.asv("run", "--bench", "relu", **FULL)
    (path,) = project.root.glob("results/*/machine.json")
    published = json.loads(path.read_text())
    published["cpu"] = "another CPU beside the same GPU"
    path.write_text(json.dumps(published))
    shutil.rmtree(project.home)  # the next runner is a fresh one
    project.home.mkdir()
    project.asv("run", "--bench", "relu", **FULL)
    assert json.loads(path.read_text())["cpu"] == "another CPU beside the same GPU"
    assert result(project, head).raw["params"]["cpu"] == "another CPU beside the same GPU"


def test_asv_machine_yes_writes_the_name_that_runs_use(project: Scratch) -> None:
    two_commits(project)
    project.asv("machine", "--yes")
    known = json.loads((project.home / ".asv-machine.json").read_text())
    project.asv("run", "--bench", "relu", **FULL)
    assert {key for key in known if key != "version"} == {project.result_files()[0].parent.name}


def test_a_machine_can_be_given_a_name_of_its_own(project: Scratch) -> None:
    two_commits(project)
    project.asv("machine", "--machine", "quiet-runner")
    project.asv("run", "--machine", "quiet-runner", "--bench", "relu", **FULL)
    assert [path.parent.name for path in project.result_files()] == ["quiet-runner"]


def test_an_ordinary_asv_benchmark_still_runs_in_asvs_way(project: Scratch) -> None:
    project.write("benchmarks/ordinary.py", "def track_answer():\n    return 42\n")
    head = project.commit("an ordinary benchmark")
    project.asv("run", "--bench", "ordinary")
    assert result(project, head).raw["results"]["ordinary.track_answer"][0] == [42]


def test_groundspeed_machine_describes_this_machine_to_asv_anew(project: Scratch) -> None:
    two_commits(project)
    project.asv("run", "--bench", "relu", **FULL)
    (path,) = project.root.glob("results/*/machine.json")
    fresh = json.loads(path.read_text())
    path.write_text(json.dumps({**fresh, "cpu": "what it once was"}))
    subprocess.run(
        [sys.executable, "-m", "groundspeed", "machine", "--asv"],
        cwd=project.root,
        env=project.environment(),
        check=True,
        capture_output=True,
    )
    assert json.loads(path.read_text()) == fresh
    known = json.loads((project.home / ".asv-machine.json").read_text())
    assert known[path.parent.name]["cpu"] == fresh["cpu"]


def test_a_range_from_before_there_were_implementations_is_not_applicable(project: Scratch) -> None:
    project.git("add", "asv.conf.json")
    project.git("commit", "-q", "-m", "nothing yet")
    empty = project.git("rev-parse", "HEAD")
    two_commits(project)
    project.asv("run", f"{empty}^!", "--bench", "softmax", **FULL)
    assert all(is_nan(value) for value in cold(project, empty).values())
