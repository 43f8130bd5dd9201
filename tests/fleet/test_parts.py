"""The store, the ledger, packing, the station, the view and the account, each by itself."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import threading

import msgspec
import pytest

from groundspeed.errors import UserError
from groundspeed.fleet.account import account, costs
from groundspeed.fleet.dispatch import Dispatch, Move
from groundspeed.fleet.ledger import Ledger, ledger_path, read_ledgers
from groundspeed.fleet.options import pull_request
from groundspeed.fleet.running import only_driver
from groundspeed.fleet.scratch import scratch_folder
from groundspeed.fleet.shipping import pack, unpack
from groundspeed.fleet.station import Station
from groundspeed.fleet.store import add_once
from groundspeed.fleet.view import FleetView
from groundspeed.fleet.work import Look, Piece, Unfit
from groundspeed.records import read_record, record_path
from groundspeed.report.style import PLAIN, Style
from tests.cli.records_for_tests import ok, record, store
from tests.fleet.made_up import about


@pytest.fixture
def payload(tmp_path):
    one = record(ok("torch_eager", 5.0), operator="relu", machine="m", run_id="r")
    store(tmp_path / "elsewhere", one)
    return record_path(tmp_path / "elsewhere", "m", "r", "relu").read_bytes()


def test_a_record_is_put_in_its_place_once(tmp_path, payload):
    path = record_path(tmp_path, "m", "r", "relu")
    assert add_once(path, payload) and read_record(path).header.operator == "relu"
    before = path.stat()
    assert not add_once(path, payload)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [found.name for found in path.parent.iterdir()] == ["relu.jsonl.gz"]


def test_of_many_at_once_one_succeeds(tmp_path, payload):
    path = record_path(tmp_path, "m", "r", "relu")
    gate, added = threading.Barrier(8), []

    def try_it():
        gate.wait()
        added.append(add_once(path, payload))

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False] * 7 + [True] and len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (("m", "r", "relu"), lambda payload: payload[:-20], "what the station sent is no record"),
        (("m", "r", "gelu"), lambda payload: payload, "is of m r relu, expected m r gelu"),
        (("m", "other", "relu"), lambda payload: payload, "expected m other relu"),
        (("n", "r", "relu"), lambda payload: payload, "expected n r relu"),
    ],
)
def test_what_is_torn_or_of_another_run_is_not_stored(tmp_path, payload, place, change, said):
    path = record_path(tmp_path, *place)
    with pytest.raises(UserError, match=said):
        add_once(path, change(payload))
    assert not path.parent.exists()


def test_what_cannot_be_written_is_one_line(tmp_path, payload):
    (tmp_path / "m").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        add_once(record_path(tmp_path, "m", "r", "relu"), payload)


def test_a_ledger_is_added_to_and_a_torn_end_is_passed_over(tmp_path):
    Ledger(tmp_path, "r", "run", "c", "7").add("m", "relu", "p", 1.5, "kept")
    Ledger(tmp_path, "r", "run", "c", "8").add("m", "gelu", "p", 2.5, "died", "its process died")
    Ledger(tmp_path, "g", "gate", "d", "").add("n", "relu", "q", 4.0, "kept")
    assert sorted((line.run, line.operator, line.seconds) for line in read_ledgers(tmp_path)) == [
        ("g", "relu", 4.0),
        ("r", "gelu", 2.5),
        ("r", "relu", 1.5),
    ]
    path = ledger_path(tmp_path, "m", "r")
    path.write_bytes(path.read_bytes() + b'{"at":"2026')
    assert len(read_ledgers(tmp_path)) == 3
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(UserError, match=r"r\.jsonl: line 1 cannot be read"):
        read_ledgers(tmp_path)


def test_the_account_says_what_was_moved_and_what_it_cost(tmp_path):
    ledger = Ledger(tmp_path, "r", "run", "c", "7")
    ledger.add("m", "relu", "p", 10.0, "kept")
    ledger.add("m", "gelu", "p", 4.0, "died", "its process died")
    ledger.add("m", "gelu", "q", 6.0, "kept")
    ledger.add("m", "", "q", 1.25, "idle")
    moves = [Move("gelu", "m", "h GPU 0", "its process died", "h GPU 1"), Move("x", "m", "h GPU 0", "node left")]
    lines = account(ledger.lines, moves, PLAIN)
    assert lines[1].strip() == (
        "21.2 GPU-s on 2 GPUs: 16.0 GPU-s in what was kept, 4.0 GPU-s in what had to be begun again, 1.2 GPU-s idle"
    )
    assert [line.split() for line in lines[2:4]] == [["gelu", "10.0", "GPU-s"], ["relu", "10.0", "GPU-s"]]
    assert lines[4].strip() == "moved: gelu (m) from h GPU 0 to h GPU 1: its process died"
    assert lines[5].strip() == "not moved: x (m) was lost at h GPU 0: node left"
    text = "\n".join(costs([*ledger.lines, msgspec.structs.replace(ledger.lines[0], pull_request="")], PLAIN))
    assert "#7" in text and "21.2" in text and "none" in text


def test_a_folder_is_the_same_on_the_other_side(tmp_path):
    folder = tmp_path / "impls"
    (folder / "relu" / "__pycache__").mkdir(parents=True)
    (folder / "relu" / "spec.py").write_text("x = 1\n")
    (folder / "relu" / "__pycache__" / "spec.pyc").write_bytes(b"\0")
    (folder / "_shared.cuh").write_bytes(bytes(range(256)))
    packed = pack(folder)
    os.utime(folder / "_shared.cuh", (1, 1))
    assert pack(folder) == packed, "what is shipped is named by its content"
    there = unpack(packed, tmp_path / "there")
    found = sorted(path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file())
    assert found == ["_shared.cuh", "relu/spec.py"]
    assert (there / "_shared.cuh").read_bytes() == bytes(range(256))


class _Bench:
    def __init__(self, argument, seat):
        self.argument, self.seat = argument, seat

    def about(self):
        return about("1")

    def work(self, order, tell):
        tell("working", 0.25)
        if isinstance(order, Exception):
            raise order
        return order


@pytest.mark.parametrize(
    ("order", "ending", "reason"),
    [
        ("x", "ok", ""),
        (Unfit("gone"), "unfit", "gone"),
        (UserError("mend it"), "problem", "mend it"),
        (KeyError("k"), "raised", r"KeyError: 'k' (test_parts.py:"),
    ],
)
def test_a_station_answers_whatever_its_work_does(monkeypatch, order, ending, reason):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GROUNDSPEED_TIMER", "")
    station = Station(_Bench, None, "s", {"GROUNDSPEED_TIMER": "events"})
    assert "OMP_NUM_THREADS" not in os.environ and os.environ["GROUNDSPEED_TIMER"] == "events"
    ended = station.work("relu", order)
    assert ended.ending == ending and ended.reason.startswith(reason) and ended.seconds >= 0
    assert station.look() == Look("relu", "working", 0.25)


def piece(name, seconds, machine="nvidia-a"):
    return Piece(name, machine, seconds, None)


def dispatched():
    dispatch = Dispatch()
    dispatch.add([piece("a", 40.0), piece("b", 30.0), piece("c", 30.0), piece("d", 20.0, "nvidia-b")])
    dispatch.take("s1", "nvidia-a", "host-1", ["s1"])
    dispatch.end("s1")
    dispatch.take("s1", "nvidia-a", "host-1", ["s1"])
    return dispatch


def test_the_view_has_a_line_a_machine():
    view = FleetView(io.StringIO(), Style(width=100), lambda: 0.0)
    stations = [about("1"), about("2"), about("3", "nvidia-b")]
    first, second = view.lines(dispatched(), stations, {"s1": Look("b", "timing triton_row", 0.5)})
    assert first.startswith("nvidia-a ▕") and "1 of 3  1 of 2 GPUs busy  about 22 s left" in first
    assert first.endswith("b timing triton_row")
    assert second.startswith("nvidia-b ▕") and "0 of 1  0 of 1 GPUs busy  about 20 s left" in second
    assert all(len(line) <= 100 for line in (first, second))


def test_on_a_terminal_the_view_is_redrawn_and_in_a_log_it_is_not():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    clock = iter(range(100))
    terminal = Terminal()
    view = FleetView(terminal, PLAIN, lambda: float(next(clock)))
    for _ in range(2):
        view.draw(dispatched(), [about("1")], {})
    view.say("b: measured")
    assert terminal.getvalue().count("\x1b[1A\x1b[J") == 2, "two lines, taken away twice"
    assert terminal.getvalue().endswith("b: measured\n")
    log = io.StringIO()
    quiet = FleetView(log, PLAIN, lambda: float(next(clock)))
    quiet.draw(dispatched(), [about("1")], {})
    assert log.getvalue() == ""
    quiet.begun(piece("a", 1.0), about("1"))
    assert log.getvalue() == "a: begun on host-1 GPU 0 (nvidia-a)\n"


def test_a_second_driver_is_kept_off_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with only_driver(tmp_path / "run-1"):
        said = rf"another driver \(process {os.getpid()}\) works on run run-1"
        with pytest.raises(UserError, match=said), only_driver(tmp_path / "run-1"):
            pass
        with only_driver(tmp_path / "run-2"):
            pass
    with only_driver(tmp_path / "run-1"):
        pass


@pytest.mark.parametrize(
    ("typed", "environment", "found"),
    [
        ("12", {"GITHUB_REF": "refs/pull/9/merge"}, "12"),
        (None, {"GITHUB_REF": "refs/pull/9/merge"}, "9"),
        (None, {"GITHUB_REF": "refs/heads/main"}, ""),
        (None, {"CI_MERGE_REQUEST_IID": "5"}, "5"),
        (None, {}, ""),
    ],
)
def test_a_pull_request_is_named_or_known_from_ci(typed, environment, found):
    assert pull_request(typed, environment) == found


def test_a_host_that_lacks_an_implementation_is_named_and_leaves_no_record(tmp_path):
    from groundspeed.fleet.sweeps import Supplies, Sweep, SweepBench
    from groundspeed.git import NO_COMMIT
    from groundspeed.measure.claim import Patience
    from groundspeed.selection import Selection
    from tests.cli import toy_project

    root = toy_project.make(tmp_path / "p", double={})
    bench = SweepBench(Supplies(pack(root / "impls"), "cpu", Patience(), False), "node1/0")
    order = Sweep("double", ("torch_eager", "guest_row"), "r", Selection(), NO_COMMIT, 0, (), "")
    with pytest.raises(UserError, match=r"double: \S+ node1 has no guest_row; install the same packages there as here"):
        bench.work(order, lambda said, share: None)


def test_a_stations_folder_is_its_own_and_what_dead_ones_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = scratch_folder()
    (mine / "impls").mkdir()
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = tmp_path / f"groundspeed-station-{dead.stdout.strip()}-abc"
    (left / "impls").mkdir(parents=True)
    (tmp_path / "groundspeed-station-notes").mkdir()
    other = scratch_folder()
    assert mine.is_dir() and other.is_dir() and mine != other and not left.exists()
    assert (tmp_path / "groundspeed-station-notes").is_dir()
