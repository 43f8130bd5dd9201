"""What is held between calls and what a call takes: the parts, with a GPU's answers faked."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest

from groundspeed.analysis.exact_rule import judge_exact
from groundspeed.analysis.rule import Verdict
from groundspeed.gate.metrics import METRICS
from groundspeed.measure import elsewhere, kept
from groundspeed.measure.referee import heap
from groundspeed.records import Measurement

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

MIB = 1 << 20
ROW = Measurement("torch_a", "float32", {"N": 1}, "ok", peak_memory_bytes=3 * MIB)


def test_moving_scratch_into_prepare_is_no_improvement():
    metric = METRICS["peak_memory"]
    moved = msgspec.structs.replace(ROW, peak_memory_bytes=MIB, prepared_memory_bytes=2 * MIB)
    grown = msgspec.structs.replace(moved, prepared_memory_bytes=4 * MIB)
    base, head, worse = (np.array(metric.samples(one) * 5) for one in (ROW, moved, grown))
    assert judge_exact(base, head, metric.thresholds[0], metric.slack).verdict is Verdict.UNCHANGED
    assert judge_exact(base, worse, metric.thresholds[0], metric.slack).verdict is Verdict.REGRESSED


def test_an_older_record_reads_as_keeping_nothing_and_costs_no_byte():
    line = msgspec.json.encode(ROW)
    assert b"prepared" not in line
    assert msgspec.json.decode(line, type=Measurement).memory_bytes == 3 * MIB
    assert msgspec.structs.replace(ROW, peak_memory_bytes=None).memory_bytes is None


@pytest.mark.parametrize(("device", "free"), [("cuda", 128), ("cpu", 16)])
def test_code_that_was_loaded_is_free_and_what_exceeds_it_counts(device, free):
    assert kept.Kept(5, free * MIB).counted(device) == 5
    assert kept.Kept(5, (free + 7) * MIB).counted(device) == 5 + 7 * MIB


def test_garbage_is_not_kept():
    def prepare():
        cycle = [torch.ones(4 * MIB)]
        cycle.append(cycle)

    with kept.keeping("cpu") as found:
        prepare()
    assert found.kept.allocated < 4096


def test_what_is_freed_meanwhile_makes_nothing_negative():
    held = [torch.ones(4 * MIB)]
    with kept.keeping("cpu") as found:
        held.clear()
    assert found.kept.allocated == 0 and found.kept.elsewhere < MIB


def test_what_prepare_raises_comes_through():
    with pytest.raises(ValueError, match="mine"), kept.keeping("cpu"):
        raise ValueError("mine")


class Cuda:
    """A device's books."""

    def __init__(self) -> None:
        self.allocated, self.reserved, self.used, self.snapshots = 10, 100, 150, 0
        self.segments: list[dict[str, object]] = []
        self.taken, self.emptied = 1, 0

    def memory_allocated(self) -> int:
        return self.allocated

    def memory_reserved(self) -> int:
        return self.reserved

    def memory_stats(self) -> dict[str, int]:
        return {"segment.all.allocated": self.taken}

    def empty_cache(self) -> None:
        self.emptied += 1

    def current_device(self) -> int:
        return 0

    def set_device(self, device: int) -> None:
        pass

    def mem_get_info(self) -> tuple[int, int]:
        return 1000 - self.used, 1000

    def memory_snapshot(self) -> list[dict[str, object]]:
        self.snapshots += 1
        return self.segments

    def synchronize(self) -> None:
        pass


@pytest.fixture
def gpu(monkeypatch):
    found = Cuda()
    for module in (heap, kept, elsewhere):
        monkeypatch.setattr(module, "torch", SimpleNamespace(cuda=found))
    monkeypatch.setattr(heap, "_pools", heap._Pools())
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    return found


def segment(pool: tuple[int, int], total: int, allocated: int) -> dict[str, object]:
    return {"segment_pool_id": pool, "total_size": total, "allocated_size": allocated}


def test_a_graphs_pool_is_in_use_as_a_whole(gpu):
    assert heap.held_bytes("cuda") == 10
    gpu.segments = [segment((0, 0), 100, 10), segment((0, 1), 64, 24)]
    gpu.reserved, gpu.allocated, gpu.taken = 164, 34, 2
    assert heap.held_bytes("cuda") == 34 + 40
    gpu.segments[1] = segment((0, 1), 64, 0)
    gpu.allocated = 10
    assert heap.held_bytes("cuda") == 10 + 64


def test_blocks_are_listed_where_there_may_be_such_a_pool_alone(gpu):
    for _ in range(5):
        heap.held_bytes("cuda")
    assert gpu.snapshots == 1


def test_what_is_kept_on_a_gpu_is_what_its_books_say(gpu):
    with kept.keeping("cuda") as found:
        gpu.allocated, gpu.reserved, gpu.used = 40, 120, 200
    assert found.kept == kept.Kept(30, 30)
    with kept.keeping("cuda") as found:
        gpu.allocated = 5
    assert found.kept == kept.NOTHING


def test_what_graphs_that_are_gone_left_is_given_back_before_anything_is_weighed(gpu):
    with kept.keeping("cuda"):
        assert gpu.emptied == 0
    gpu.segments, gpu.taken = [segment((0, 1), 64, 0)], 2
    with kept.keeping("cuda"):
        assert gpu.emptied == 1


def test_cupys_pool_is_counted_with_torchs(gpu, monkeypatch):
    pool = SimpleNamespace(used_bytes=lambda: 7, total_bytes=lambda: 20)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool))
    assert heap.held_bytes("cuda") == 17 and kept.elsewhere_on_gpu() == 150 - 100 - 20


def test_what_a_call_takes_of_the_device_and_gives_back_is_seen(gpu):
    size = 8 * MIB

    def run():
        gpu.used += size
        time.sleep(0.05)
        gpu.used -= size

    assert elsewhere.past_allocator(run, "cuda", 0) == size
    assert elsewhere.past_allocator(lambda: None, "cuda", 0) == 0


def test_what_it_keeps_is_seen_however_short_it_was(gpu):
    def run():
        gpu.used += 8 * MIB

    assert elsewhere.past_allocator(run, "cuda", 0) == 8 * MIB


def test_what_torchs_allocator_reserves_is_not_past_it(gpu):
    def run():
        gpu.reserved += 8 * MIB
        gpu.used += 8 * MIB

    assert elsewhere.past_allocator(run, "cuda", 0) == 0


def test_it_is_looked_no_longer_than_the_call_takes():
    looks = [0]

    def look() -> int:
        looks[0] += 1
        return looks[0]

    with elsewhere.highest(look) as seen:
        time.sleep(0.02)
    after = looks[0]
    time.sleep(0.02)
    assert looks[0] == after == seen() > 2


def test_torchs_own_memory_is_not_past_its_allocator_on_a_cpu():
    x = torch.ones(4 * MIB)
    assert elsewhere.past_allocator(lambda: x + 1, "cpu", 16 * MIB) == 0


def test_where_the_system_does_not_tell_nothing_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere, "_CLEAR", tmp_path / "none" / "clear_refs")
    assert elsewhere.past_allocator(lambda: bytearray(64 * MIB), "cpu", 0) == 0


def test_another_allocators_memory_is_seen_on_a_cpu():
    def run():
        return np.ones(8 * MIB)

    assert 63 * MIB < elsewhere.past_allocator(run, "cpu", 0) < 68 * MIB


def test_workspaces_are_taken_on_a_gpu(monkeypatch):
    taken = []
    monkeypatch.setattr(kept, "_multiply", lambda: taken.append(1))
    for device in ("cuda", "cpu"):
        kept.take_workspaces(device)
    assert taken == [1]


def test_the_gpu_that_is_looked_at_during_a_call_is_this_threads(gpu, monkeypatch):
    """CUDA's current device belongs to the thread: another would look at the first GPU."""
    current = threading.local()
    looked = set()
    gpu.current_device = lambda: getattr(current, "device", 0)
    gpu.set_device = lambda device: setattr(current, "device", device)

    def mem_get_info() -> tuple[int, int]:
        looked.add(gpu.current_device())
        return 1000 - gpu.used, 1000

    gpu.mem_get_info = mem_get_info
    gpu.set_device(3)
    elsewhere.past_allocator(lambda: time.sleep(0.02), "cuda", 0)
    assert looked == {3}


def test_a_pool_is_seen_where_as_much_was_given_back_as_it_takes(gpu):
    assert heap.held_bytes("cuda") == 10
    gpu.segments, gpu.taken = [segment((0, 0), 36, 10), segment((0, 1), 64, 24)], 2  # reserved is what it was
    assert heap.held_bytes("cuda") == 10 + 40
