"""The driver on made-up stations: order, groups, faults, agreement. What Ray does is in test_ray_*.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.errors import UserError
from groundspeed.fleet.dispatch import MOST_ATTEMPTS, Dispatch
from groundspeed.fleet.driver import FleetLost
from groundspeed.fleet.work import Ended, Piece
from tests.fleet.made_up import Stations, Work, about, drive

SECONDS = {"a": 1.0, "b": 5.0, "c": 3.0, "d": 2.0}


def two(**more):
    return Stations({"s1": about("1"), "s2": about("2")}, **more)


def test_the_longest_go_first_and_each_is_done_once(tmp_path):
    stations, work = two(), Work(SECONDS)
    done, lines = drive(stations, work, tmp_path)
    assert [name for _, name in stations.log] == ["b", "c", "d", "a"]
    assert set(work.kept) == {("nvidia-a", name) for name in SECONDS} and not done.problems and not done.moves
    kept = [line for line in lines if line.outcome == "kept"]
    assert {line.operator: line.seconds for line in kept} == SECONDS
    assert {line.pull_request for line in lines} == {"12"}
    held = sum(line.seconds for line in lines)
    assert held == pytest.approx(2 * stations.clock, abs=0.7), "every second of both stations is accounted for"


def test_each_kind_of_machine_does_everything_and_nothing_of_the_other(tmp_path):
    stations = Stations({"s1": about("1"), "s2": about("2", "nvidia-b", driver="999", torch="2.9")})
    work = Work(SECONDS)
    drive(stations, work, tmp_path)
    assert sorted(work.offered) == ["nvidia-a", "nvidia-b"]
    for seat, machine in (("s1", "nvidia-a"), ("s2", "nvidia-b")):
        assert {work.kept[machine, name] for name in SECONDS} == {f"{name}@{seat}" for name in SECONDS}


@pytest.mark.parametrize(
    ("fate", "outcome"),
    [
        ("its process died", "died"),
        ("its node left", "left"),
        (Ended("unfit", reason="fell off", seconds=2.0), "unfit"),
        (Ended("raised", reason="KeyError: 1", seconds=2.0), "raised"),
    ],
)
def test_what_is_lost_is_done_elsewhere_and_said(tmp_path, fate, outcome):
    stations, work = two(fates={("s1", "b"): fate}), Work(SECONDS)
    done, lines = drive(stations, work, tmp_path)
    assert len(work.kept) == 4 and work.kept["nvidia-a", "b"] == "b@s2"
    (move,) = done.moves
    assert (move.name, move.source, move.to) == ("b", "host-1 GPU 0", "host-2 GPU 0")
    assert [line.outcome for line in lines if line.operator == "b"] == [outcome, "kept"]
    used_again = stations.log[-1] != ("s1", "b") and any(seat == "s1" for seat, _ in stations.log[2:])
    assert used_again == (outcome in ("died", "raised")), "a lost GPU is not used again; a new process is"
    assert ("s1" in stations.retired) == (outcome == "unfit")


def test_what_kills_its_process_everywhere_is_given_up(tmp_path):
    stations = Stations({f"s{i}": about(str(i)) for i in (1, 2, 3, 4)}, always={"b": "its process died"})
    work = Work(SECONDS)
    done, _ = drive(stations, work, tmp_path)
    assert done.problems == {("nvidia-a", "b"): "given up after 3 tries: its process died"}
    assert set(work.kept) == {("nvidia-a", name) for name in "acd"}
    assert sum(name == "b" for _, name in stations.log) == MOST_ATTEMPTS
    assert [bool(move.to) for move in done.moves] == [True, True, False]


def test_with_one_station_it_is_tried_there_again(tmp_path):
    stations = Stations({"s1": about("1")}, fates={("s1", "b"): "its process died"})
    work = Work(SECONDS)
    done, _ = drive(stations, work, tmp_path)
    assert len(work.kept) == 4 and done.moves[0].to == "host-1 GPU 0"


def test_nodes_that_leave_are_no_fault_of_the_work():
    for its_fault, given_up_after in ((False, None), (True, MOST_ATTEMPTS)):
        dispatch = Dispatch()
        dispatch.add([Piece("a", "m", 1.0, None)])
        for number in range(1, 20):
            if dispatch.take("s", "m", f"host-{number}", []) is None:
                break
            dispatch.again("s", f"host-{number}", "lost", its_fault)
        assert bool(dispatch.problems) == its_fault and number == (given_up_after + 1 if its_fault else 19)


def test_gpus_are_given_back_when_nothing_is_left_for_them_and_asked_for_again_when_something_is_lost(tmp_path):
    abouts = {f"s{i}": about(str(i)) for i in range(1, 5)}
    stations = Stations(abouts, fates={("s1", "long"): "its process died", ("s2", "long"): "its process died"})
    work = Work({"long": 20.0, "short": 1.0, "brief": 0.5, "least": 0.3})
    done, lines = drive(stations, work, tmp_path)
    assert len(work.kept) == 4 and not done.problems and stations.recalled >= 1
    idle = sum(line.seconds for line in lines if line.outcome == "idle")
    assert idle < 1.5 * stations.clock, "of four stations one worked: three would have been idle all the time"


def test_what_the_user_must_mend_is_not_tried_again(tmp_path):
    stations, work = two(fates={("s1", "b"): Ended("problem", reason="b: no spec")}), Work(SECONDS)
    done, _ = drive(stations, work, tmp_path)
    assert done.problems == {("nvidia-a", "b"): "b: no spec"} and len(work.kept) == 3 and not done.moves


def test_without_a_station_it_ends_and_keeps_what_there_is(tmp_path):
    fates = {("s1", "c"): "its node left", ("s2", "d"): "its node left", ("s1", "b"): "its node left"}
    stations, work = two(fates=fates), Work({"c": 3.0, "d": 2.0, "a": 1.0})
    with pytest.raises(FleetLost, match="no station is left"):
        drive(stations, work, tmp_path)
    assert not work.kept and {line.outcome for line in stations.lines} >= {"left"}


def test_a_machine_of_which_no_station_is_left_does_not_hold_up_the_others(tmp_path):
    stations = Stations(
        {"s1": about("1"), "s2": about("2", "nvidia-b")},
        fates={("s2", "b"): Ended("unfit", reason="fell off the bus", seconds=1.0)},
    )
    work = Work(SECONDS)
    done, _ = drive(stations, work, tmp_path)
    assert len([key for key in work.kept if key[0] == "nvidia-a"]) == 4
    assert done.problems["nvidia-b", "b"] == "no nvidia-b is left: fell off the bus" and len(done.problems) == 4


def test_what_another_driver_did_meanwhile_is_not_done_again(tmp_path):
    stations, work = two(), Work(SECONDS, done_elsewhere={"c", "a"})
    drive(stations, work, tmp_path)
    assert {name for _, name in stations.log} == {"b", "d"}


def test_what_two_drivers_did_is_kept_once(tmp_path):
    stations, work = two(), Work(SECONDS)
    inner = work.is_done
    work.is_done = lambda piece: (
        work.kept.setdefault(piece.key, "theirs") and False if piece.name == "b" else inner(piece)
    )
    _, lines = drive(stations, work, tmp_path)
    assert work.kept["nvidia-a", "b"] == "theirs"
    assert [line.outcome for line in lines if line.operator == "b"] == ["duplicate"]


def test_versions_that_differ_are_named_before_anything_is_measured(tmp_path):
    abouts = {"s1": about("1"), "s2": about("2", driver="470"), "s3": about("3"), "s4": about("4", torch="2.9")}
    stations, work = Stations(abouts), Work(SECONDS)
    with pytest.raises(UserError) as refused:
        drive(stations, work, tmp_path)
    said = str(refused.value)
    assert "host-2 GPU 0: has driver 470, 3 of 4 nvidia-a have 580" in said
    assert "host-4 GPU 0: has torch 2.9, 3 of 4 nvidia-a have 2.11" in said
    assert "--fleet-without host-2 --fleet-without host-4" in said and "\n" not in said
    assert not stations.log and not work.offered


def test_a_gpu_that_torch_cannot_use_is_named_before_anything_is_measured(tmp_path):
    fault = "torch 2.11 cannot use the GPU: the driver is too old"
    stations = Stations({"s1": about("1"), "s2": about("2", problem=fault)})
    with pytest.raises(UserError, match=r"host-2 GPU 0: torch 2\.11 cannot use the GPU"):
        drive(stations, Work(SECONDS), tmp_path)
    assert not stations.log


def test_one_that_comes_late_helps_when_it_is_alike_and_is_left_out_when_not(tmp_path):
    abouts = {"s1": about("1"), "s2": about("2"), "s3": about("3", driver="470")}
    stations = Stations(abouts, late={"s2": 3.0, "s3": 3.0})
    done, _ = drive(stations, Work(SECONDS), tmp_path)
    assert {seat for seat, _ in stations.log} == {"s1", "s2"} and stations.retired == ["s3"]
    assert done.remarks == ["host-3 GPU 0 is left out: has driver 470, the others 580"]


def test_a_fleet_of_which_nothing_is_free_is_not_waited_for_for_ever(tmp_path):
    stations = Stations({"s1": about("1")}, late={"s1": 1e9})
    with pytest.raises(UserError, match="no GPU of the fleet was free within 5 s"):
        drive(stations, Work(SECONDS), tmp_path)


FATES = st.sampled_from(["died", "node left", Ended("unfit", reason="x"), Ended("raised", reason="y")])


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.1, 6.0), min_size=1),
    st.dictionaries(st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.sampled_from("abcdefgh")), FATES, max_size=6),
)
def test_whatever_happens_nothing_is_lost_and_nothing_is_done_twice(tmp_path_factory, seconds, fates):
    """Each operator is kept once or its problem is named, unless no station is left."""
    stations = Stations({seat: about(seat) for seat in ("s1", "s2", "s3")}, fates=dict(fates))
    work = Work(seconds)
    folder = tmp_path_factory.mktemp("ledger")
    try:
        done, lines = drive(stations, work, folder)
    except FleetLost:
        assert len(stations.retired) + sum("node" in str(fate) for fate in fates.values()) >= 3
        return
    names = {name for _, name in work.kept}
    given_up = {name for _, name in done.problems}
    assert names | given_up == set(seconds) and not names & given_up
    kept = [line.operator for line in lines if line.outcome == "kept"]
    assert sorted(kept) == sorted(names)
    assert len(done.moves) == sum(line.outcome in ("died", "left", "unfit", "raised") for line in lines)
