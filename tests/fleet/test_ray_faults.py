"""Faults on a real Ray cluster of this machine, with operators that only take time; each is kept once."""

from __future__ import annotations

import os
import re
import signal
import time
from itertools import pairwise

import pytest

from groundspeed.fleet.ledger import read_ledgers
from groundspeed.fleet.overhead import fleet_cost
from groundspeed.records import find_records, read_record
from tests.fleet.conftest import needs_ray, stations

pytestmark = [needs_ray, pytest.mark.slow]


def kept(tmp_path, run):
    """Operators of a run that are in the store, each read whole."""
    found = [read_record(path).header for path in find_records(tmp_path / "results") if path.parent.name == run]
    return sorted(header.operator for header in found)


def lines(tmp_path, run):
    return [line for line in read_ledgers(tmp_path / "results") if line.run == run]


def names(count):
    return [f"op_{number:03}" for number in range(count)]


@pytest.mark.quiet
def test_three_workers_come_close_to_the_best_that_there_is(cluster):
    """The figures of four are in docs/fleet.md: python -m groundspeed.fleet.overhead."""
    cost = fleet_cost(cluster.address, workers=3, operators=9, seconds=1.0)
    assert cost.ideal == 3.0 and cost.efficiency >= 0.9, cost


def test_a_station_that_dies_is_replaced_and_its_work_is_done_elsewhere(cluster, synthetic, tmp_path):
    """From a ray:// address."""
    run = synthetic("dies", "--operators", "5", "--seconds", "1.2", fleet=cluster.client)
    run.wait_for("op_002: begun")
    time.sleep(0.5)
    os.kill(stations()[0], signal.SIGKILL)
    assert run.end() == 0, run.said
    assert kept(tmp_path, "dies") == names(5)
    (move,) = re.findall(r"^moved (op_\d+) from (.+) to (.+): its process died$", run.said, re.MULTILINE)
    assert move[1] != move[2]
    (died,) = (line for line in lines(tmp_path, "dies") if line.outcome == "died")
    assert died.operator == move[0] and 0.3 <= died.seconds <= 3.0
    assert sorted(line.operator for line in lines(tmp_path, "dies") if line.outcome == "kept") == names(5)


def test_a_node_that_leaves_takes_nothing_along_and_one_that_joins_helps(cluster, synthetic, tmp_path):
    # Enough for the three to have some left when the newcomer is ready, which took six seconds on a busy machine.
    run = synthetic("leaves", "--operators", "18", "--seconds", "1.5")
    run.wait_for("op_002: begun")
    cluster.remove(cluster.nodes[-1])
    cluster.add()
    assert run.end() == 0, run.said
    assert kept(tmp_path, "leaves") == names(18)
    assert (
        len(re.findall(r"^moved op_\d+ from .+ to .+: its (?:node left the fleet|process died)$", run.said, re.M)) == 1
    )
    joined = re.findall(r"^(.+) joins as synthetic; (\d) in all$", run.said, re.MULTILINE)
    assert len({name for name, _ in joined}) == 4, "three at first, one that came"
    assert re.search(rf"measured in .* on {re.escape(joined[-1][0])}", run.said), "it was given work"


def test_a_gpu_that_falls_off_is_not_used_again(cluster, synthetic, tmp_path):
    """On the cluster that RAY_ADDRESS names, by auto."""
    fault = tmp_path / "fault"
    words = ["--operators", "6", "--seconds", "1.0", "--loses", str(fault)]
    run = synthetic("falls", *words, fleet="auto", RAY_ADDRESS=cluster.address)
    run.wait_for("op_002: begun")
    fault.touch()
    assert run.end() == 0, run.said
    assert kept(tmp_path, "falls") == names(6)
    found = re.findall(r"^moved op_\d+ from (.+) to (.+): the GPU has fallen off the bus$", run.said, re.MULTILINE)
    ((lost, other),) = found
    assert other != lost
    after = run.said[run.said.index("to be measured elsewhere") :]
    assert f"begun on {lost}" not in after


def test_a_driver_that_is_killed_goes_on_where_it_ended(synthetic, tmp_path):
    first = synthetic("killed", "--operators", "7", "--seconds", "0.7")
    first.wait_for("op_004: begun")
    first.process.kill()
    first.process.wait()
    before = {path: path.stat().st_mtime_ns for path in find_records(tmp_path / "results")}
    assert before
    second = synthetic("killed", "--operators", "7", "--seconds", "0.7")
    assert second.end() == 0, second.said
    assert kept(tmp_path, "killed") == names(7)
    begun = re.findall(r"^(op_\d+): begun", second.said, re.MULTILINE)
    assert sorted([*begun, *(path.name.partition(".")[0] for path in before)]) == names(7), "none of them twice"
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())


def test_two_drivers_at_once_share_the_stations_and_never_one_of_them(synthetic, tmp_path):
    """The second waits until the first one's stations are free, although its own run needs them too."""
    first = synthetic("one", "--operators", "6", "--seconds", "1.0")
    second = synthetic("two", "--operators", "3", "--seconds", "1.0")
    assert first.end() == 0 and second.end() == 0, first.said + second.said
    assert kept(tmp_path, "one") == names(6) and kept(tmp_path, "two") == names(3)
    spans = [line for run in ("one", "two") for line in lines(tmp_path, run) if line.outcome == "kept"]
    seats = {line.place for line in spans}
    assert len(seats) == 3, "a station more than there are nodes"
    for seat in seats:
        mine = [line.run for line in spans if line.place == seat]
        assert sum(one != other for one, other in pairwise(mine)) <= 1, f"{seat} was passed to and fro: {mine}"


def test_two_drivers_of_one_run_keep_everything_once(synthetic, tmp_path):
    """As from two hosts, between which no lock stands."""
    both = [synthetic("same", "--operators", "7", "--seconds", "0.7") for _ in range(2)]
    assert [one.end() for one in both] == [0, 0], both[0].said + both[1].said
    assert kept(tmp_path, "same") == names(7)
    added = [line.operator for line in lines(tmp_path, "same") if line.outcome == "kept"]
    assert sorted(added) == names(7)


def test_a_gpu_is_one_stations_alone_and_nobody_takes_more_than_there_is_work_for(cluster, synthetic, tmp_path):
    """GPUs that only Ray believes in: three of two kinds, two drivers."""
    nodes = [cluster.add(cpus=0, gpus=2, kind="H200"), cluster.add(cpus=0, gpus=1, kind="A100")]
    try:
        first = synthetic("gpus", "--device", "cuda", "--operators", "6", "--seconds", "0.7")
        first.wait_for("op_001: begun")
        second = synthetic("few", "--device", "cuda", "--operators", "1", "--seconds", "0.5")
        assert first.end() == 0 and second.end() == 0, first.said + second.said
    finally:
        for node in nodes:
            cluster.remove(node)
    assert kept(tmp_path, "gpus") == names(6) and kept(tmp_path, "few") == names(1)
    joined = re.findall(r"^\S+ (\S+) (\d) joins", first.said, re.MULTILINE)
    assert sorted(joined) == [("A100", "0"), ("H200", "0"), ("H200", "1")]
    assert len(re.findall(r" joins as ", second.said)) <= 2, "one of each kind"
    held = [line for line in lines(tmp_path, "gpus") if line.outcome == "kept"]
    assert len({line.place for line in held}) == 3
