"""Of each implementation and case the newest measurement stands, with its own run's baseline and ceilings."""

from __future__ import annotations

import pytest

from groundspeed.analysis.claims.shelf import LOOK_BACK
from groundspeed.records import Ceilings
from groundspeed.report.standing import standing
from groundspeed.report.stored import history, newest_first
from tests.cli.records_for_tests import bad, ok, record, store


def stands(*records):
    """(implementation, case) -> the run that its standing measurement is of; records come newest first."""
    found = {}
    for part in standing(records):
        for entry in part.entries:
            key = entry.implementation, entry.shape["M"]
            assert key not in found, f"{key} stands twice"
            found[key] = part.record.header.run_id
    return found


def test_a_narrowed_run_takes_nothing_from_the_rest():
    old = record(
        ok("torch_eager", 9), ok("cuda_row", 5), ok("torch_eager", 3, M=64), ok("cuda_row", 2, M=64), run_id="1"
    )
    new = record(ok("torch_eager", 8), ok("triton_row", 4), run_id="2")
    assert stands(new, old) == {
        ("torch_eager", 8192): "2",
        ("triton_row", 8192): "2",
        ("cuda_row", 8192): "1",
        ("torch_eager", 64): "1",
        ("cuda_row", 64): "1",
    }


def test_speedups_and_shares_of_ceilings_are_those_of_their_own_run():
    old = record(ok("torch_eager", 200), ok("cuda_row", 100), run_id="1")
    new = record(ok("torch_eager", 400), ok("triton_row", 100), run_id="2", ceilings=Ceilings(copy=2e12))
    rows = {row.implementation: row for part in standing([new, old]) for _, row in part.rows()}
    assert rows["torch_eager"].time.value == 400_000
    assert rows["triton_row"].speedup.value == pytest.approx(4) and rows["cuda_row"].speedup.value == pytest.approx(2)
    assert rows["triton_row"].ceiling_share == pytest.approx(2 * rows["cuda_row"].ceiling_share)


def test_a_record_that_everything_replaces_is_no_source():
    old = record(ok("torch_eager", 9), run_id="1")
    new = record(ok("torch_eager", 8), run_id="2")
    assert [part.record.header.run_id for part in standing([new, old])] == ["2"]


def test_a_failure_is_not_hidden_by_an_older_success():
    old = record(ok("torch_eager", 9), ok("cuda_row", 5), run_id="1")
    new = record(bad("cuda_row", "failed", "wrong", "incorrect"), run_id="2")
    assert stands(new, old) == {("torch_eager", 8192): "1"}


def test_a_success_after_a_failure_stands():
    old = record(bad("cuda_row", "failed", "wrong", "incorrect"), run_id="1")
    assert stands(record(ok("cuda_row", 5), run_id="2"), old) == {("cuda_row", 8192): "2"}


def test_a_case_that_became_another_one_has_no_older_measurements():
    old = record(ok("torch_eager", 9, case_digest="a"), ok("cuda_row", 5, case_digest="a"), run_id="1")
    new = record(ok("torch_eager", 9, case_digest="b"), run_id="2")
    assert stands(new, old) == {("torch_eager", 8192): "2"}
    newest = record(ok("torch_eager", 9, case_digest="a"), run_id="3")
    assert stands(newest, new, old) == {("torch_eager", 8192): "3", ("cuda_row", 8192): "1"}


def test_code_that_was_skipped_unchanged_keeps_its_time_and_changed_code_does_not():
    old = record(ok("jax_jit", 9, implementation_digest="a"), run_id="1")
    for digest, expected in (("a", {("jax_jit", 8192): "1"}), ("b", {})):
        skipped = ok("jax_jit", 9, implementation_digest=digest)
        skipped = type(skipped)("jax_jit", skipped.dtype, skipped.shape, "skipped", implementation_digest=digest)
        assert stands(record(skipped, run_id="2"), old) == expected
        assert stands(record(skipped, run_id="3"), record(skipped, run_id="2"), old) == expected


def test_what_is_gone_does_not_stand():
    old = record(ok("torch_eager", 9), ok("cuda_gone", 5))
    (part,) = standing([old], lambda entry: entry.implementation != "cuda_gone")
    assert [entry.implementation for entry in part.entries] == ["torch_eager"]
    assert standing([]) == []


def test_a_history_is_of_one_operator_machine_and_tiers_newest_first(tmp_path):
    for run_id, more in (("1", {}), ("3", {}), ("2", {}), ("4", {"tier": "small"}), ("5", {"operator": "relu"})):
        store(tmp_path, record(ok("torch_eager", 9), run_id=run_id, **more))
    broken = store(tmp_path, record(ok("torch_eager", 9), run_id="6"))
    broken.write_bytes(b"torn")
    records, problems = history(newest_first(tmp_path, "nvidia-test")["softmax"], ["core", "full"])
    assert [one.header.run_id for one in records] == ["3", "2", "1"]
    assert len(problems) == 1 and str(broken) in problems[0]
    assert newest_first(tmp_path, "nvidia-a100") == {} and history((), ["core"]) == ([], [])


def test_a_past_commit_measured_later_is_not_newer(tmp_path):
    def of(run_id, commit_time):
        return record(ok("torch_eager", 9), run_id=run_id, commit=run_id * 40, commit_time=commit_time)

    for one in (
        of("1", "2026-01-02T00:00:00+00:00"),
        of("2", "2026-01-01T23:00:00-02:00"),
        of("3", "2026-01-01T00:00:00+00:00"),
    ):
        store(tmp_path, one)
    paths = newest_first(tmp_path, "nvidia-test")["softmax"]
    records, problems = history(paths, ["core"])
    assert [one.header.run_id for one in records] == ["2", "1", "3"] and problems == []
    assert [path.parent.name for path in paths] == ["2", "1", "3"]


def test_a_damaged_record_leaves_its_run_in_its_place_and_very_old_ones_are_not_read(tmp_path):
    for number in range(LOOK_BACK + 2):
        time = f"2026-01-{1 + number // 24:02}T{number % 24:02}:00:00+00:00"
        run = {"run_id": f"{number:02}", "commit": "c" * 40, "commit_time": time}
        store(tmp_path, record(ok("torch_eager", 9), **run))
    store(tmp_path, record(ok("torch_eager", 9), operator="relu", **run)).write_bytes(b"torn")
    newest = newest_first(tmp_path, "nvidia-test")
    assert [path.parent.name for path in newest["relu"]] == [f"{LOOK_BACK + 1:02}"]
    records, _ = history(newest["softmax"], ["core"])
    assert [one.header.run_id for one in records] == [f"{number:02}" for number in range(LOOK_BACK + 1, 1, -1)]
