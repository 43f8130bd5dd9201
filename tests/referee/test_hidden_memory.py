"""Memory that no call's own peak shows: it is let be, and it counts."""

from __future__ import annotations

import sys

import pytest

from groundspeed.measure import contender as contender_module
from groundspeed.measure import judging, kept, opening, weighing
from groundspeed.operator import case
from groundspeed.records import Measurement
from tests.referee.court import GALLERY, measured, timing_bench

MIB = 1 << 20
N = case("float32", N=65536)
OUTPUT = 4 * 65536
PAGE = 4096  # what the gate does not judge: a number that became a tensor has some bytes, and an allocator rounds up


class NothingKept:
    """Weighs nothing: the one thing that sees what is held between calls."""

    kept = kept.NOTHING

    def __init__(self, device: str) -> None:
        pass

    def __enter__(self) -> NothingKept:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def row(name: str, device: str = "cpu", operator: str = "double", one=N) -> Measurement:
    sys.modules.pop(f"{GALLERY.package}.{operator}.{name}", None)  # or it would not be imported again
    (found,) = measured(GALLERY, operator, (name,), one, timing_bench(device))
    assert found.status == "ok", found.reason
    return found


def is_about(found: int | None, wanted: int) -> bool:
    return found is not None and wanted <= found <= wanted + PAGE


def test_what_keeps_nothing_is_said_to_keep_nothing():
    found = row("torch_eager")
    assert is_about(found.peak_memory_bytes, OUTPUT) and found.prepared_memory_bytes == 0 and found.notes == []


@pytest.mark.parametrize("name", ["torch_moves_scratch", "torch_imported_scratch"])
def test_scratch_that_is_made_beforehand_counts(name):
    found = row(name)
    assert is_about(found.peak_memory_bytes, OUTPUT)
    assert 16 * MIB <= found.prepared_memory_bytes < 17 * MIB
    assert found.memory_bytes == found.peak_memory_bytes + found.prepared_memory_bytes


@pytest.mark.parametrize(
    ("name", "where"), [("torch_moves_scratch", contender_module), ("torch_imported_scratch", opening)]
)
def test_it_does_not_where_nobody_weighs_what_is_held(name, where, monkeypatch):
    monkeypatch.setattr(where, "keeping", NothingKept)
    assert is_about(row(name).memory_bytes, OUTPUT)


def test_scratch_of_a_later_call_counts(monkeypatch):
    assert 16 * MIB <= row("torch_late_scratch").prepared_memory_bytes < 17 * MIB
    monkeypatch.setattr(judging._Book, "weighed", lambda book, prepared: prepared)
    assert row("torch_late_scratch").prepared_memory_bytes == 0


def test_what_is_kept_of_the_c_heap_counts_beyond_what_a_compiler_may_keep(monkeypatch):
    found = row("torch_own_heap")
    assert 47 * MIB <= found.prepared_memory_bytes < 50 * MIB
    assert found.notes[0].startswith("of what is held since prepare torch's allocator did not give 64.")
    monkeypatch.setattr(kept, "held_bytes", lambda device: None)
    assert is_about(row("torch_own_heap").memory_bytes, OUTPUT)


def test_what_a_call_takes_of_the_c_heap_counts(monkeypatch):
    found = row("torch_own_malloc")
    assert 63 * MIB <= found.peak_memory_bytes < 68 * MIB and found.prepared_memory_bytes == 0
    (note,) = found.notes
    assert note.startswith("of a call's peak memory torch's allocator did not give 6")
    monkeypatch.setattr(weighing, "past_allocator", lambda run, device, counted: 0)
    assert is_about(row("torch_own_malloc").peak_memory_bytes, OUTPUT)


def test_packed_weights_count_and_accuse_nobody():
    one = case("float32", M=17, N=190, K=230)
    found = row("torch_packed", operator="matmul_gelu", one=one)
    assert 4 * 190 * 230 <= found.prepared_memory_bytes < 3 * 4 * 190 * 230 and not found.notes


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["torch_moves_scratch", "torch_late_scratch", "torch_imported_scratch"])
def test_scratch_on_a_gpu(name):
    found = row(name, "cuda")
    assert is_about(found.peak_memory_bytes, OUTPUT) and is_about(found.prepared_memory_bytes, 16 * MIB)
    assert not found.notes


@pytest.mark.gpu
def test_what_keeps_nothing_on_a_gpu():
    found = row("torch_eager", "cuda")
    assert is_about(found.peak_memory_bytes, OUTPUT) and found.prepared_memory_bytes == 0 and not found.notes


@pytest.mark.gpu
def test_memory_of_the_driver_counts_beyond_what_code_may_take(monkeypatch):
    found = row("torch_own_device_memory", "cuda")
    assert 128 * MIB <= found.prepared_memory_bytes < 192 * MIB
    assert found.notes[0].startswith("of what is held since prepare torch's allocator did not give ")
    monkeypatch.setattr(kept, "elsewhere_on_gpu", lambda: 0)
    assert is_about(row("torch_own_device_memory", "cuda").memory_bytes, OUTPUT)


@pytest.mark.gpu
def test_memory_of_the_driver_in_a_call_counts(monkeypatch):
    found = row("torch_own_device_malloc", "cuda")
    assert 200 * MIB <= found.peak_memory_bytes < 300 * MIB and found.prepared_memory_bytes == 0
    assert found.notes[0].startswith("of a call's peak memory torch's allocator did not give 2")
    monkeypatch.setattr(weighing, "past_allocator", lambda run, device, counted: 0)
    assert is_about(row("torch_own_device_malloc", "cuda").peak_memory_bytes, OUTPUT)


@pytest.mark.gpu
def test_a_graph_keeps_its_pool():
    """Five vectors at least live in it: four of the repeated one, and the answer; a pool takes 2 MiB at a time."""
    found = row("torch_graph", "cuda")
    assert 5 * OUTPUT <= found.prepared_memory_bytes <= 32 * MIB and is_about(found.peak_memory_bytes, OUTPUT)


@pytest.mark.gpu
def test_what_matrix_products_share_is_nobodys():
    one = case("float32", M=64, N=64, K=64)
    found = row("torch_eager", "cuda", "matmul_gelu", one)
    assert found.prepared_memory_bytes < MIB
