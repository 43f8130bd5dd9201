"""`groundspeed run --first-call cold` for real, what it prints, and the table of it. Made-up figures are marked so."""

from __future__ import annotations

import re

import msgspec
import pytest

from groundspeed.records import FirstCall, find_records, read_record
from groundspeed.report.first_call import first_call_table, has_first_calls
from groundspeed.report.style import Style
from tests.cli import toy_project
from tests.cli.records_for_tests import ok, record
from tests.cli.toy_project import ADD, TRITON, groundspeed

PYPROJECT = '[tool.groundspeed]\nfirst_call_subset = ["double/torch_a*"]\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = toy_project.make(tmp_path_factory.mktemp("toy") / "p", double={"torch_add": ADD, "triton_double": TRITON})
    (root / "pyproject.toml").write_text(PYPROJECT)
    return root


@pytest.mark.slow
def test_a_run_measures_them_on_request_prints_them_and_keeps_them(project):
    done = groundspeed("run", "--first-call", "cold", cwd=project, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 0, done.stderr
    (path,) = find_records(project / "results")
    rows = {row.implementation: row for row in read_record(path).measurements}
    assert rows["torch_add"].first_call_cold.total_ns > 0 and rows["torch_add"].first_call_warm.total_ns > 0
    assert rows["torch_eager"].first_call_cold is None
    block = done.stdout[done.stdout.index("first call in fresh processes, caches empty") :]
    assert re.search(r"cold +load +prepare", block) and re.search(r"torch_add( +\S+ [nµm]?s){6}", block)
    assert "first calls in fresh processes" in done.stdout
    table = groundspeed("table", "--quantity", "first_call", cwd=project).stdout
    assert re.search(r"torch_add( +\S+ [nµm]?s){6}", table)


@pytest.mark.slow
def test_without_the_request_they_are_not_measured(project, tmp_path):
    done = groundspeed("run", "--results", str(tmp_path), cwd=project, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 0 and "first call in fresh processes" not in done.stdout
    (path,) = find_records(tmp_path)
    assert not any(row.first_call_cold for row in read_record(path).measurements)
    table = groundspeed("table", "--quantity", "first_call", "--results", str(tmp_path), cwd=project).stdout
    assert "none was measured: type groundspeed run --first-call cold" in table


@pytest.mark.parametrize(
    ("arguments", "variable", "said"),
    [
        (
            ["--first-call", "cold", "--only", "double/torch_eager"],
            {},
            "nothing in this run is one of double/torch_a*; see",
        ),
        (["--first-call", "luke"], {}, "invalid choice: 'luke'"),
        ([], {"GROUNDSPEED_FIRST_CALL": "luke"}, "GROUNDSPEED_FIRST_CALL is 'luke', expected cold, or nothing"),
    ],
)
def test_what_cannot_be_is_refused(project, tmp_path, arguments, variable, said):
    done = groundspeed("run", "--results", str(tmp_path), *arguments, cwd=project, GROUNDSPEED_DEVICE="cpu", **variable)
    assert done.returncode == 2 and said in done.stderr and not find_records(tmp_path)


def test_a_subset_of_which_nothing_is_in_the_run_is_a_typo(tmp_path):
    root = toy_project.make(tmp_path / "p", double={})
    done = groundspeed("run", "--first-call", "cold", cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 2 and not find_records(root / "results")
    assert (
        "groundspeed: --first-call: nothing in this run is one of softmax/*, matmul/*, relu/*; "
        "see first_call_subset in pyproject.toml\n"
    ) in done.stderr


def test_the_table_shows_the_quickest_cold_call_first_and_what_is_missing_as_a_dash():
    slow = ok("cuda_vec4", 100.0)
    slow = msgspec.structs.replace(
        slow, first_call_cold=FirstCall(8e9, 1e6, 2e6), first_call_warm=FirstCall(5e7, 1e6, 2e6)
    )
    quick = msgspec.structs.replace(ok("torch_eager", 254.0), first_call_cold=FirstCall(1e6, 0.0, 3e6))
    one = record(slow, quick, ok("cupy_raw", 127.0))
    lines = first_call_table(one, Style(colour=False, width=80))
    assert has_first_calls(one) and not has_first_calls(record(ok("cupy_raw", 127.0)))
    assert max(map(len, lines)) <= 80
    body = [line.split() for line in lines if "torch_eager" in line or "cuda_vec4" in line]
    assert [line[0] for line in body] == ["torch_eager", "cuda_vec4"]
    assert body[1][1:11] == ["8.00", "s", "8.00", "s", "1.00", "ms", "2.00", "ms", "53.0", "ms"]
    assert body[0][1:3] == ["4.00", "ms"] and "–" in body[0] and not any("cupy_raw" in line for line in lines)
