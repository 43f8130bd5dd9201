"""Merging made-up shards: what fits becomes one run, what does not is refused before anything is written."""

from __future__ import annotations

import msgspec
import pytest

from groundspeed.errors import UserError
from groundspeed.fleet.cut import cut
from groundspeed.fleet.merging import find_shards, merge
from groundspeed.fleet.overhead import ROOT, newest_records, shard_cost
from groundspeed.records import SELECTION_FILE, find_records, read_record, record_path
from tests.cli.records_for_tests import ENVIRONMENT, ok, record, store

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EXPECTED = {"relu": 3.0, "matmul": 9.0, "softmax": 5.0, "copy": 1.0}


def shard(
    root, index, count=2, *, machine="nvidia-test", commit=COMMIT, expected=EXPECTED, lacks=(), dirty=False, **more
):
    """One shard's results folder, with the run that is in it."""
    results, run_id = root / f"shard-{index}", f"2026010{index}T000000Z-01234567-000{index}"
    part = cut(expected, index, count, commit, dirty)
    folder = record_path(results, machine, run_id, "x").parent
    folder.mkdir(parents=True)
    selection = {"tier": "core", "only": [], "first_call": "", "shard": part, **more.pop("selection", {})}
    (folder / SELECTION_FILE).write_bytes(msgspec.json.encode(selection))
    for operator in part.operators:
        if operator not in lacks:
            one = record(
                ok("torch_eager", 5.0), operator=operator, machine=machine, run_id=run_id, commit=commit, **more
            )
            store(results, one)
    return results


def merged(paths, into, **how):
    return merge([found for path in paths for found in find_shards(path)], into, **how)


def test_shards_become_one_run(tmp_path):
    paths = [shard(tmp_path, 2), shard(tmp_path, 1)]
    into = tmp_path / "all"
    done = merged(paths, into)
    records = [read_record(path) for path in find_records(into)]
    assert [one.header.operator for one in records] == sorted(EXPECTED) and done.added == 4
    assert {one.header.run_id for one in records} == {"20260101T000000Z-01234567-0001"} == {done.folder.name}
    for path in paths:
        for before in map(read_record, find_records(path)):
            (after,) = (one for one in records if one.header.operator == before.header.operator)
            assert msgspec.structs.replace(after.header, run_id=before.header.run_id) == before.header
            assert (after.measurements, after.footer) == (before.measurements, before.footer)
    kept = msgspec.json.decode((done.folder / SELECTION_FILE).read_bytes())
    assert kept == {"tier": "core", "only": [], "first_call": "", "shard": None}
    assert not done.remarks


def test_merging_again_adds_nothing_and_a_break_is_mended(tmp_path):
    paths, into = [shard(tmp_path, 1), shard(tmp_path, 2)], tmp_path / "all"
    merged(paths, into)
    before = {path: path.read_bytes() for path in find_records(into)}
    assert merged(paths, into).added == 0
    next(iter(before)).unlink()
    assert merged(paths, into).added == 1
    assert {path: path.read_bytes() for path in find_records(into)} == before


def test_all_of_them_may_lie_in_one_folder(tmp_path):
    shard(tmp_path / "artifacts", 1)
    shard(tmp_path / "artifacts", 2)
    assert merged([tmp_path / "artifacts"], tmp_path / "all").added == 4


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"machine": "nvidia-other"}, "was measured on nvidia-other"),
        ({"commit": "f" * 40}, "is of commit ffffffffff"),
        ({"count": 3}, "is one of 3"),
        ({"selection": {"tier": "full"}}, "narrowed by tier full"),
        ({"expected": {**EXPECTED, "gelu": 2.0}}, "differ in what there is: gelu"),
        ({"expected": {**EXPECTED, "copy": 90.0}}, "they knew other durations, and were cut apart"),
        ({"lacks": ("relu", "softmax")}, r"shard 2/2 \(20260102T000000Z-01234567-0002\) has no record of softmax"),
    ],
)
def test_what_is_of_another_run_is_refused(tmp_path, second, said):
    paths = [shard(tmp_path, 1), shard(tmp_path, 2, **second)]
    with pytest.raises(UserError, match=said):
        merged(paths, tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_missing_shard_is_named_and_may_be_left_out_by_name(tmp_path):
    paths = [shard(tmp_path, 1, 3), shard(tmp_path, 3, 3)]
    with pytest.raises(UserError, match=r"shard 2 of 3 is missing; .*--partial"):
        merged(paths, tmp_path / "all")
    done = merged(paths, tmp_path / "all", partial=True)
    assert done.missing == ("shard 2 of 3 is missing",)
    assert {one.header.operator for one in done.records} == {"matmul", "copy", "relu"}


def test_a_shard_that_is_there_twice_is_refused(tmp_path):
    paths = [shard(tmp_path, 1), shard(tmp_path, 2), shard(tmp_path / "again", 2)]
    with pytest.raises(UserError, match=r"shard 2/2 is there twice: .*shard-2.* and .*again"):
        merged(paths, tmp_path / "all")


def test_where_the_shards_lie_nothing_is_merged(tmp_path):
    paths = [shard(tmp_path, 1), shard(tmp_path, 2)]
    with pytest.raises(UserError, match="merge into another folder"):
        merged(paths, paths[0])
    assert len(find_records(paths[0])) == 1


def test_another_record_in_the_way_is_left_alone(tmp_path):
    paths, into = [shard(tmp_path, 1), shard(tmp_path, 2)], tmp_path / "all"
    merged(paths, into)
    relu = next(path for path in find_records(into) if path.name.startswith("relu"))
    relu.unlink()
    store(into, record(ok("torch_eager", 7.0), operator="relu", run_id=relu.parent.name, commit=COMMIT))
    (into / "nvidia-test" / "records" / relu.parent.name / "copy.jsonl.gz").unlink()
    with pytest.raises(UserError, match="holds something else"):
        merged(paths, into)
    assert len(find_records(into)) == 3, "nothing may be written when something does not fit"


def test_runners_that_differ_are_named(tmp_path):
    other = msgspec.structs.replace(ENVIRONMENT, driver="590.2")
    done = merged([shard(tmp_path, 1, dirty=True), shard(tmp_path, 2, environment=other)], tmp_path / "all")
    driver, dirty = done.remarks
    assert driver == "runners differ in driver: 580.1 (matmul); 590.2 (copy, relu, softmax)"
    assert dirty.startswith("shard 1 measured files that differed")


def test_a_record_that_is_not_what_it_must_be_is_refused(tmp_path):
    paths = [shard(tmp_path, 1), shard(tmp_path, 2)]
    first, second = find_records(paths[0])[0], find_records(paths[1])[0]
    second.write_bytes(first.read_bytes())
    with pytest.raises(UserError, match=r"says it is of .*, expected "):
        merged(paths, tmp_path / "all")
    second.write_bytes(b"torn")
    with pytest.raises(UserError, match="cannot be read"):
        merged(paths, tmp_path / "all")


def test_a_folder_without_a_shard_is_refused(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        find_shards(tmp_path / "none")
    with pytest.raises(UserError, match="holds no shard; type: groundspeed run --shard 1/2"):
        find_shards(tmp_path)


def test_an_operator_that_is_spread_over_gpus_stays_under_the_machine_that_has_them(tmp_path):
    paths = [shard(tmp_path, 1), shard(tmp_path, 2, lacks=("copy",))]
    run_id = "20260102T000000Z-01234567-0002"
    store(
        paths[1],
        record(ok("torch_eager", 5.0), operator="copy", machine="nvidia-test-x4", run_id=run_id, commit=COMMIT),
    )
    done = merged(paths, tmp_path / "all")
    found = {path.name.partition(".")[0]: path for path in find_records(tmp_path / "all")}
    assert found["copy"].parent.parent.parent.name == "nvidia-test-x4" and len(found) == 4 == done.added
    assert {path.parent.name for path in found.values()} == {done.folder.name}


def test_cutting_and_merging_a_whole_run_takes_less_than_two_seconds():
    """The figures are in docs/fleet.md: python -m groundspeed.fleet.overhead."""
    records = newest_records(ROOT / "results")
    if not records:
        pytest.skip("no records are stored in this checkout")
    cost = shard_cost(4, records)
    assert cost.operators == len(records) and 4 * cost.cutting + cost.merging <= 2.0, cost
