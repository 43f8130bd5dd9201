"""Lanes: which GPU a worker sees, who else is on it, and work for several at a time. The GPUs are made up."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pytest

from groundspeed.errors import UserError
from groundspeed.measure import lane as module
from groundspeed.measure import neighbours
from groundspeed.measure.claim import GpuBusy, Patience
from groundspeed.measure.gpu_state import Gpu
from groundspeed.measure.handing_out import hand_out
from groundspeed.measure.lane import CPU, Lane, Place, default_place, open_lane, places
from groundspeed.measure.neighbours import NOBODY, Neighbours
from groundspeed.measure.workers import Stopped, Workers
from groundspeed.nvml import Gpu as Listed

H200 = "NVIDIA H200"
TWO = (Listed(H200, 1 << 37, "GPU-aa"), Listed(H200, 1 << 37, "GPU-bb"))


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# which GPU


@pytest.mark.parametrize(
    ("named", "uuids"), [("all", ["GPU-aa", "GPU-bb"]), ("1", ["GPU-bb"]), ("1, 0", ["GPU-bb", "GPU-aa"])]
)
def test_gpus_are_named_by_number_and_seen_by_uuid(named, uuids):
    chosen = places(named, TWO)
    assert [place.variables for place in chosen] == [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in uuids]
    assert [place.label for place in chosen] == [f"GPU {TWO.index(place.gpu)}" for place in chosen]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("2", r"--gpus 2: no GPU '2': there are 0, 1; type numbers like 0,1, or all"),
        ("0,x", "no GPU 'x'"),
        ("", "no GPU ''"),
        ("0,0", "name each GPU once"),
    ],
)
def test_a_gpu_that_is_not_there_or_named_twice_is_refused(named, said):
    with pytest.raises(UserError, match=said):
        places(named, TWO)
    with pytest.raises(UserError, match=r"none is visible|name each"):
        places(named, ())


def test_gpus_of_two_kinds_are_not_filed_as_one():
    mixed = (TWO[0], Listed("NVIDIA A100-SXM4-80GB", 1 << 36, "GPU-cc"))
    with pytest.raises(UserError, match="NVIDIA A100-SXM4-80GB and NVIDIA H200 are filed apart"):
        places("all", mixed)


def test_without_a_name_it_is_the_first_visible_one(monkeypatch):
    monkeypatch.setattr(module, "visible_gpus", lambda: TWO[1:])
    assert default_place("cuda") == Place(TWO[1], "GPU 0")
    assert default_place("cpu") is CPU and CPU.variables == {}


def test_a_lane_holds_its_gpu_and_its_workers_see_that_alone():
    with open_lane(Place(TWO[1], "GPU 1"), Patience(), nursery=False) as lane:
        assert lane.workers.environment["CUDA_VISIBLE_DEVICES"] == "GPU-bb"
        with pytest.raises(GpuBusy), open_lane(Place(TWO[1], "GPU 1"), Patience()):
            raise AssertionError("it was held twice")
        with open_lane(Place(TWO[0], "GPU 0"), Patience(), nursery=False):
            pass
    with open_lane(CPU, Patience(), nursery=False) as one, open_lane(CPU, Patience(), nursery=False):
        assert "CUDA_VISIBLE_DEVICES" not in one.workers.environment or "CUDA_VISIBLE_DEVICES" in os.environ


# who else is on it


def watched(*looks: tuple[list[tuple[int, int | None]], int]) -> Gpu:
    """A GPU that shows these (processes, utilisation) one after the other, and the last of them from then on."""
    left = list(looks)
    now = {"at": left[0]}

    def processes(handle):
        now["at"] = left.pop(0) if len(left) > 1 else left[0]
        return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in now["at"][0]]

    return Gpu(
        SimpleNamespace(
            nvmlDeviceGetComputeRunningProcesses=processes,
            nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=now["at"][1]),
        ),
        "handle",
    )


GIB = 1 << 30
ALONE: tuple[list[tuple[int, int | None]], int] = ([], 0)
OTHERS: tuple[list[tuple[int, int | None]], int] = ([(1, GIB), (2, 2 * GIB)], 45)


def test_others_are_counted_and_this_process_is_not():
    assert neighbours.look(watched(([(os.getpid(), GIB), (1, GIB), (2, None)], 0))) == Neighbours(2, GIB, 0)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_what_this_run_did_last_is_waited_out_and_what_stays_is_somebody_elses():
    clock = Clock()
    own = watched(([], 80), ([], 40), ALONE)
    assert neighbours.settled(own, clock, clock.sleep) == NOBODY and clock.now < 1
    clock = Clock()
    assert neighbours.settled(watched(([], 80)), clock, clock.sleep).utilisation == 80 and 1 <= clock.now <= 2
    clock = Clock()
    little = watched(([], neighbours.BUSY - 1))
    assert neighbours.settled(little, clock, clock.sleep).utilisation == 4 and clock.now == 0


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Neighbours(1, 5 * GIB // 2, 0), "1 other process holds 2.5 GiB, idle"),
        (Neighbours(2, 3 * GIB, 45), "2 other processes hold 3.0 GiB, and it is 45 % busy"),
        (Neighbours(0, 0, 99), "it is 99 % busy with processes that cannot be seen from here"),
    ],
)
def test_they_are_told_of_in_one_line_without_their_names(seen, said):
    assert str(seen) == said and seen.present
    assert seen.working is (seen.utilisation > 0)
    assert NOBODY.worse(seen) == seen.worse(NOBODY) == seen and not NOBODY.present


def lane(gpu: Gpu | None, seconds: float = 0.0) -> Lane:
    return Lane(Place(TWO[0], "GPU 0"), Workers({}, nursery=False), Patience(seconds), gpu)


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(neighbours, "_SETTLE", 0.0)
    monkeypatch.setattr(module, "_AGAIN", 0.01)


def test_without_patience_they_are_told_of_and_it_is_measured_all_the_same(hurry):
    told: list[str] = []
    assert lane(watched(OTHERS)).before(told.append) == Neighbours(2, 3 * GIB, 45)
    assert told == ["GPU 0 is not ours alone: 2 other processes hold 3.0 GiB, and it is 45 % busy"]
    assert lane(watched(OTHERS)).after() == Neighbours(2, 3 * GIB, 45)
    assert lane(watched(ALONE)).before(told.append) == NOBODY and len(told) == 1
    assert lane(None).before() == lane(None).after() == NOBODY


def test_with_patience_it_waits_until_they_are_gone(hurry):
    told: list[str] = []
    assert lane(watched(OTHERS, OTHERS, OTHERS, ALONE), 60.0).before(told.append) == NOBODY
    assert len(told) >= 2


def test_with_patience_it_gives_up_in_one_line(hurry):
    said = r"^GPU 0 is not ours alone: 2 other .* busy, and did not become free within 0\.0005 min$"
    with pytest.raises(GpuBusy, match=said):
        lane(watched(OTHERS), 0.03).before()


def test_waiting_ends_with_the_run(hurry):
    one = lane(watched(OTHERS), 3600.0)
    threading.Timer(0.1, one.workers.stop).start()
    with pytest.raises(Stopped):
        one.before()


# work for several


def lanes(count: int) -> list[Lane]:
    return [
        Lane(Place(Listed(H200, 0, f"GPU-{number}"), f"GPU {number}"), Workers({}, nursery=False))
        for number in range(count)
    ]


class Log:
    """Who worked on what, in the order in which it began, and how many worked on one lane at most."""

    def __init__(self, seconds=None, raises=None):
        self.began: list[tuple[str, str]] = []
        self.most: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._lock = threading.Lock()
        self._seconds, self._raises = seconds or {}, raises or {}

    def work(self, lane: Lane, piece: str) -> None:
        label = lane.place.label
        with self._lock:
            self.began.append((label, piece))
            self._now[label] = self._now.get(label, 0) + 1
            self.most[label] = max(self.most.get(label, 0), self._now[label])
        end = time.monotonic() + self._seconds.get(piece, 0.02)
        while time.monotonic() < end:
            lane.workers.check()
            time.sleep(0.005)
        with self._lock:
            self._now[label] -= 1
        if piece in self._raises:
            raise self._raises[piece]
        if label in self._raises:
            raise self._raises[label]


def test_every_piece_is_worked_on_once_and_none_beside_another_on_its_lane():
    log = Log(seconds={"long": 0.4})
    pieces = ["long", *"abcdefgh"]
    assert hand_out(pieces, lanes(3), log.work) == []
    assert sorted(piece for _, piece in log.began) == sorted(pieces)
    assert [piece for _, piece in log.began][:1] == ["long"] and set(log.most.values()) == {1}
    assert len({label for label, _ in log.began}) == 3
    busy_with_long = next(label for label, piece in log.began if piece == "long")
    assert [piece for label, piece in log.began if label == busy_with_long] == ["long"], "the others did the rest"


def test_one_lane_works_in_the_callers_thread():
    threads = set()
    hand_out(["a", "b"], lanes(1), lambda lane, piece: threads.add(threading.current_thread()))
    assert threads == {threading.main_thread()}


def test_a_gpu_that_does_not_become_free_leaves_its_piece_to_the_others():
    log = Log(raises={"GPU 1": GpuBusy("GPU 1 is taken")}, seconds={"a": 0.1})
    busy = hand_out(list("abcd"), lanes(2), log.work)
    assert [str(one) for one in busy] == ["GPU 1 is taken"]
    assert {piece for label, piece in log.began if label == "GPU 0"} == set("abcd")


@pytest.mark.parametrize("count", [1, 2])
def test_when_none_becomes_free_it_is_an_error(count):
    taken = {f"GPU {number}": GpuBusy(f"GPU {number} is taken") for number in range(count)}
    with pytest.raises(GpuBusy, match="is taken"):
        hand_out(["a", "b"], lanes(count), Log(raises=taken).work)


@pytest.mark.parametrize("error", [KeyError("a bug"), KeyboardInterrupt()])
def test_what_else_is_raised_ends_all_lanes(error):
    log = Log(raises={"a": error}, seconds={"a": 0.1, "b": 600.0})
    began = time.monotonic()
    with pytest.raises(type(error)):
        hand_out(list("abcd"), lanes(2), log.work)
    assert time.monotonic() - began < 60 and {piece for _, piece in log.began} == {"a", "b"}


def test_an_interrupt_of_the_main_thread_ends_all_lanes(monkeypatch):
    log = Log(seconds=dict.fromkeys("abcd", 600.0))
    joined = threading.Thread.join

    def interrupted(thread, timeout=None):
        monkeypatch.setattr(threading.Thread, "join", joined)
        time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hand_out(list("abcd"), lanes(2), log.work)
    assert len(log.began) == 2
