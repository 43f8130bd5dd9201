"""The tally of whole-gate A/A runs: what is kept, and the page that it is written into."""

from __future__ import annotations

import pytest

from groundspeed.errors import UserError
from groundspeed.gate.soak import BEGIN, END, read_runs, soak, table, update_page

ARGUMENTS = ("--all", "--device", "cpu", "--tier", "full")


@pytest.fixture
def page(repo):
    repo.write("docs/gating.md", f"before\n{BEGIN}\nstale words\n{END}\nafter\n")
    return repo.root / "docs/gating.md"


def test_runs_add_up(repo, page, fake_engine, capsys):
    assert soak(repo.root, 2, ARGUMENTS, lambda: fake_engine()) == 0
    assert soak(repo.root, 1, ARGUMENTS, lambda: fake_engine()) == 0
    runs = read_runs(repo.root / "results")
    assert [run.compared for run in runs] == [28] * 3 and sum(run.alarms for run in runs) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale words" not in text
    assert "| cpu-fake | 3 | 0 | 0 | 84 | 0 | 0 | 0." in text
    assert repo.git("status", "--porcelain") == "?? docs/\n?? results/"


def test_a_run_that_could_not_measure_proves_nothing_and_is_counted_apart(repo, page, fake_engine):
    assert soak(repo.root, 1, ARGUMENTS, lambda: fake_engine(lose_after=2)) == 2
    assert "| cpu-fake | 0 | 0 | 1 | 0 | 0 | 0 | 0.00% |" in page.read_text()


def test_a_false_alarm_is_counted(repo, page, fake_engine):
    class Biased(fake_engine):
        def _side(self, side, case, request, random):
            measured = super()._side(side, case, request, random)
            if "/base/" in f"{side.tree}/":
                return measured
            samples = {name: [1.2 * x for x in values] for name, values in measured.samples.items()}
            return type(measured)(
                **{**{f: getattr(measured, f) for f in measured.__struct_fields__}, "samples": samples}
            )

    assert soak(repo.root, 1, ARGUMENTS, lambda: Biased()) == 1
    (run,) = read_runs(repo.root / "results")
    assert run.alarms == 2 * 2 * 4 and run.largest["device_cold"] == pytest.approx(0.2, abs=0.01)


def test_a_page_without_marks_is_named(tmp_path):
    page = tmp_path / "gating.md"
    page.write_text("nothing")
    with pytest.raises(UserError, match="marks"):
        update_page(page, [])
    assert "No whole-gate A/A run" in table([])
