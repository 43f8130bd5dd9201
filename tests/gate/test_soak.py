"""The tally of whole-gate A/A runs: what is kept, how a run goes on after its budget, the page it is written into."""

from __future__ import annotations

import msgspec
import pytest

from groundspeed.errors import UserError
from groundspeed.gate import soak
from groundspeed.gate.expected import expected_seconds
from groundspeed.gate.soak_record import (
    BEGIN,
    END,
    SoakPiece,
    is_whole,
    read,
    seconds_of,
    table,
    update_page,
    whole_runs,
)
from tests.gate.clock import Steps

ARGUMENTS = ("--device", "cpu", "--tier", "full")


@pytest.fixture
def two(repo, monkeypatch):
    """The scratch repository with a second operator and a page for the tally."""
    monkeypatch.setattr("groundspeed.gate.soak.machine_name", lambda device: "cpu-fake")
    for name in ("spec", "torch_eager", "triton_row"):
        repo.write(f"impls/triple/{name}.py", (repo.root / f"impls/double/{name}.py").read_text())
    repo.write("docs/gating.md", f"before\n{BEGIN}\nstale words\n{END}\nafter\n")
    repo.commit("Two operators")
    return repo


def run(repo, engine, *words):
    return soak.main(["--project", str(repo.root), *words, *ARGUMENTS], lambda: engine)


def pieces(repo):
    return read(repo.root / "results")


def test_whole_runs_judge_every_operator_and_add_up(two, fake_engine, capsys):
    assert run(two, fake_engine(), "--runs", "2") == 0
    assert run(two, fake_engine()) == 0
    kept = pieces(two)
    assert [piece.operator for piece in kept] == ["double", "triple"] * 3
    assert len({piece.run for piece in kept}) == 3 and all(is_whole(own) for own in whole_runs(kept).values())
    assert {piece.compared for piece in kept} == {28} and sum(piece.alarms for piece in kept) == 0
    text = (two.root / "docs/gating.md").read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale words" not in text
    assert "| cpu-fake | 3 | 0 | 0 | 2 | 0 | 168 | 0 | 0 | 0 |" in text
    assert "| cpu-fake | `device_cold` | 0." in text and "% of 24 |" in text
    assert {line.split()[-1] for line in two.git("status", "--porcelain").splitlines()} == {
        "docs/gating.md",
        "results/",
    }
    assert "double: 28 compared, 0 regressed" in capsys.readouterr().out


def test_every_run_draws_other_inputs(two, fake_engine):
    engine = fake_engine()
    run(two, engine, "--runs", "3")
    assert [request.seed for request in engine.requests] == [0, 0, 1000, 1000, 2000, 2000]


def asked(engine):
    """Operator and the implementations asked for, request by request."""
    return [(request.operator, sorted({pair.name for pair in request.pairs})) for request in engine.requests]


def test_a_sample_is_drawn_anew_for_each_run_and_is_the_same_in_each_sitting(two, fake_engine, capsys):
    engine = fake_engine()
    assert run(two, engine, "--runs", "8", "--sample", "1") == 0
    drawn = [names for _, names in asked(engine)]
    assert all(len(names) == 1 for names in drawn) and len({tuple(names) for names in drawn}) == 2
    again = soak.Sitting(
        project=soak.find_project(two.root), machine="cpu-fake", device="cpu", runs=1, skip=(), sample=1,
        part=soak.Part(), deadline=0.0, gate_arguments=(), engine=lambda: engine,
    )  # fmt: skip
    assert again._chosen("a run", "double") == again._chosen("a run", "double")
    two.write("impls/triple/tvm_te.py", "")
    assert again._chosen("a run", "triple")[0] != "triple/tvm_te" and len(again._chosen("a run", "triple")) == 1
    assert run(two, fake_engine(), "--sample", "0") == 2
    assert "--sample 0: expected at least 1" in capsys.readouterr().err


def interrupts_at(count, engine):
    """The engine, but for an interrupt at the n-th request."""

    def measure(request):
        if len(engine.requests) + 1 == count:
            raise KeyboardInterrupt
        yield from engine(request)

    return measure


def test_an_interrupted_sitting_keeps_what_was_judged_writes_the_table_and_goes_on(two, fake_engine, capsys):
    assert run(two, interrupts_at(2, fake_engine())) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "groundspeed: interrupted; what was judged is kept: type it again to go on"
    assert [piece.operator for piece in pieces(two)] == ["double"]
    assert "| cpu-fake | 0 and 1 begun | 0 | 0 | 1 |" in (two.root / "docs/gating.md").read_text()
    assert run(two, fake_engine()) == 0
    kept = pieces(two)
    assert [piece.operator for piece in kept] == ["double", "triple"] and kept[0].run == kept[1].run


class Deadline:
    """A clock that is past every budget from the n-th look on."""

    def __init__(self, looks):
        self.looks = looks

    def monotonic(self):
        self.looks -= 1
        return 0.0 if self.looks > 0 else 1e9


def test_a_run_that_its_budget_cut_short_is_finished_before_the_next_one(two, fake_engine, monkeypatch, capsys):
    monkeypatch.setattr("groundspeed.gate.soak.time", Deadline(4))  # deadline, operator 1: look, begin, end
    assert run(two, fake_engine(), "--budget", "10m") == 0
    assert "before triple: run it again" in capsys.readouterr().out
    (first,) = pieces(two)
    assert (
        not is_whole([first])
        and "| cpu-fake | 0 and 1 begun | 0 | 0 | 1 |" in (two.root / "docs/gating.md").read_text()
    )
    monkeypatch.undo()
    monkeypatch.setattr("groundspeed.gate.soak.machine_name", lambda device: "cpu-fake")
    assert run(two, fake_engine(), "--runs", "2") == 0
    kept = pieces(two)
    assert [piece.operator for piece in kept] == ["double", "triple", "double", "triple"]
    assert kept[0].run == kept[1].run != kept[2].run == kept[3].run


def test_an_operator_is_expected_to_take_what_it_took_the_last_time_and_another_what_the_others_do():
    assert expected_seconds((), ()) == 0.0
    assert expected_seconds((600.0,), ()) == 0.0  # else it would never be judged again
    assert expected_seconds((133.0, 40.0), (133.0,)) == 40.0
    assert expected_seconds((), (133.0, 20.0, 30.0)) == 30.0


def test_what_an_operator_took_is_known_by_machine_and_only_where_it_was_measured():
    pieces = [piece(seconds=1.0), piece(seconds=2.0, operator="b"), piece(seconds=3.0, machine="other")]
    pieces += [piece(seconds=0.1, result="could not measure"), piece(seconds=4.0)]
    assert seconds_of(pieces, "m", "a") == [1.0, 4.0]


def test_a_short_operator_is_still_begun_after_a_long_one(two, fake_engine, monkeypatch, capsys):
    """One that took 400 of 500 s left 100 unused before: the next was expected to take as long."""
    run(two, fake_engine())
    monkeypatch.setattr("groundspeed.gate.soak.time", Steps(400.0, 1.0))
    assert run(two, fake_engine(), "--budget", "500s") == 0
    assert [each.operator for each in pieces(two)] == ["double", "triple"] * 2
    assert "the budget is spent" not in capsys.readouterr().out


def test_another_inventory_begins_a_run_of_its_own(two, fake_engine, monkeypatch):
    run(two, fake_engine(lose_after=2))
    two.write("impls/fourth/spec.py", (two.root / "impls/double/spec.py").read_text())
    two.write("impls/fourth/torch_eager.py", (two.root / "impls/double/torch_eager.py").read_text())
    run(two, fake_engine())
    runs = whole_runs(pieces(two))
    assert [len(own) for own in runs.values()] == [2, 3] and [is_whole(own) for own in runs.values()] == [False, True]


def test_what_could_not_be_measured_proves_nothing_and_is_measured_again(two, fake_engine):
    assert run(two, fake_engine(lose_after=2)) == 2
    assert "| cpu-fake | 0 and 1 begun | 0 | 0 | 0 | 2 | 0 | 0 | 0 | 0 |" in (two.root / "docs/gating.md").read_text()
    assert run(two, fake_engine()) == 0
    assert "| cpu-fake | 1 | 0 | 0 | 2 | 0 | 56 | 0 | 0 | 0 |" in (two.root / "docs/gating.md").read_text()


def test_implementations_can_be_left_out(two, fake_engine):
    engine = fake_engine()
    run(two, engine, "--skip", "triton_*")
    assert {pair.name for request in engine.requests for pair in request.pairs} == {"torch_eager"}
    assert soak.main(["--project", str(two.root), "--only", "double"]) == 2


def test_parts_share_the_operators_out_and_are_runs_of_their_own(two, fake_engine, capsys):
    engine = fake_engine()
    for part in ("1/2", "2/2", "1/2"):
        assert run(two, engine, "--part", part) == 0
    assert [operator for operator, _ in asked(engine)] == ["double", "triple", "double"]
    kept = pieces(two)
    assert len({piece.run for piece in kept}) == 3 and [piece.part for piece in kept] == ["1/2", "2/2", "1/2"]
    assert "| cpu-fake | 0 | 3 | 0 | 2 | 0 | 84 | 0 | 0 | 0 |" in (two.root / "docs/gating.md").read_text()
    capsys.readouterr()
    for wrong in ("0/2", "3/2", "2", "a/b", "1/0", "/3"):
        assert run(two, engine, "--part", wrong) == 2
        assert capsys.readouterr().err == f"groundspeed: --part {wrong}: expected K/N with K from 1 to N, as 1/3\n"


def test_a_part_that_its_budget_cut_short_is_not_gone_on_with_as_another(two, fake_engine, monkeypatch):
    monkeypatch.setattr("groundspeed.gate.soak.time", Deadline(4))
    run(two, fake_engine(), "--budget", "10m")
    monkeypatch.undo()
    monkeypatch.setattr("groundspeed.gate.soak.machine_name", lambda device: "cpu-fake")
    run(two, fake_engine(), "--part", "2/2")
    run(two, fake_engine())
    kept = pieces(two)
    assert [(piece.operator, piece.part) for piece in kept] == [("double", ""), ("triple", "2/2"), ("triple", "")]
    assert kept[0].run == kept[2].run != kept[1].run


def test_a_false_alarm_is_counted_and_named(two, fake_engine):
    class Biased(fake_engine):
        def _side(self, side, case, request, random):
            measured = super()._side(side, case, request, random)
            if "/base/" in f"{side.tree}/":
                return measured
            samples = {name: [1.2 * x for x in values] for name, values in measured.samples.items()}
            return type(measured)(
                **{**{f: getattr(measured, f) for f in measured.__struct_fields__}, "samples": samples}
            )

    assert run(two, Biased()) == 1
    first, _ = pieces(two)
    assert first.alarms == 2 * 2 * 4 == len(first.alarmed)
    assert max(ratio for _, ratio in first.differences["device_cold"]) == pytest.approx(0.2, abs=0.01)
    text = (two.root / "docs/gating.md").read_text()
    assert "| cpu-fake | 1 | 0 | 1 | 2 | 0 | 56 | 32 |" in text
    assert "double/triton_row float32 N=64 device_cold: regressed +20." in text


def piece(**more):
    made = SoakPiece("r", ("a",), "a", "m", "d", "c", "pass", "", 1.0, 4, 0, 0, 0, {}, [])
    return msgspec.structs.replace(made, **more)


def test_differences_are_shown_by_how_long_a_kernel_takes():
    seen = [(2e3, 0.02), (5e3, -0.004), (9e3, 0.003), (2e5, 0.001)]
    assert "| m | `device_cold` | 2.00% of 1 | 0.40% of 2 | – | 0.10% of 1 |" in table(
        [piece(differences={"device_cold": seen})]
    )


def test_pages_without_marks_and_damaged_files_are_named(tmp_path):
    page = tmp_path / "gating.md"
    page.write_text("nothing")
    with pytest.raises(UserError, match="marks"):
        update_page(page, [])
    assert "No whole-gate A/A run" in table([])
    damaged = tmp_path / "m/soak/x.jsonl.gz"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"{}")
    with pytest.raises(UserError, match=r"x\.jsonl\.gz"):
        read(tmp_path)
