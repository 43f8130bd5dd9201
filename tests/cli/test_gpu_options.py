"""What only a GPU has, asked of a CPU: one line, and nothing measured."""

from __future__ import annotations

import pytest

from tests.cli import toy_project
from tests.cli.toy_project import groundspeed


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return toy_project.make(tmp_path_factory.mktemp("options") / "p", double={})


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--timer", "events"], {}, "--timer events is a GPU's, and this run is on the CPU, whose clock is its timer"),
        (["--energy"], {}, "--energy reads a GPU's counter, and this run is on the CPU; leave it out"),
        (["--timer", "clock"], {}, "invalid choice: 'clock'"),
        ([], {"GROUNDSPEED_TIMER": "cuptii"}, "unknown timer 'cuptii': expected cupti, events, graph; did you mean"),
        ([], {"GROUNDSPEED_ENERGY": "joules"}, "GROUNDSPEED_ENERGY is 'joules', expected 1, or 0 or nothing"),
    ],
)
def test_one_line_and_nothing_measured(project, arguments, environment, said):
    done = groundspeed("run", *arguments, cwd=project, GROUNDSPEED_DEVICE="cpu", **environment)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (project / "results").exists()


def test_the_environments_choice_holds_where_there_is_a_gpu_alone(project):
    done = groundspeed("run", cwd=project, GROUNDSPEED_DEVICE="cpu", GROUNDSPEED_TIMER="graph", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    from groundspeed.records import find_records, read_record

    (path,) = find_records(project / "results")
    found = read_record(path)
    assert {row.timer for row in found.measurements} == {"clock"} and found.header.command.endswith("--timer graph")
