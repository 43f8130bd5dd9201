"""The speedup table: pairing, ceilings, coverage, and what a failure leaves."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.roofline import ceiling, compute_time, memory_time
from groundspeed.analysis.speedup import fastest, group_speedups, paired_speedup, speedup_table
from groundspeed.records import Accuracy, Ceilings, Environment, Footer, Header, Measurement, Record

CEILINGS = Ceilings(copy=4e12, read=4e12, write=5e12, matmul={"float16": 7e14})
ROUNDS = [100.0, 110.0, 90.0, 105.0, 95.0, 101.0, 99.0, 102.0, 98.0]


def entry(implementation, samples=None, status="ok", M=8, **more):
    return Measurement(
        implementation=implementation,
        dtype="float16",
        shape={"M": M, "N": 4},
        status=status,
        samples={"device_cold": samples} if samples else {},
        **more,
    )


def record(*entries, ceilings=CEILINGS, bound="memory"):
    header = Header(
        run_id="r1",
        operator="softmax",
        machine="m",
        started="2026-01-01T00:00:00Z",
        environment=Environment(device="cpu", device_name="x", python="3.12", os="linux"),
        ceilings=ceilings,
        bound=bound,
        ideas={"triton_row": "One program a row."},
    )
    return Record(header, entries, Footer(len(entries)))


def test_rounds_are_paired_so_that_common_noise_cancels():
    _, row = speedup_table(record(entry("torch_eager", ROUNDS), entry("triton_row", [x / 2 for x in ROUNDS])))
    assert row.paired
    assert (row.speedup.low, row.speedup.value, row.speedup.high) == pytest.approx((2.0, 2.0, 2.0))
    assert row.time.value == 50.0 and row.time.low == 45.0 and row.time.high == 55.0
    assert row.idea == "One program a row."


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=20), st.lists(st.floats(1, 1e6), min_size=1, max_size=20))
def test_a_speedup_lies_in_its_interval_and_inverts_when_unpaired(base, other):
    estimate, paired = paired_speedup(base, other)
    assert paired == (len(base) == len(other))
    assert estimate.low <= estimate.value <= estimate.high
    if not paired:
        assert paired_speedup(other, base)[0].value == pytest.approx(1 / estimate.value)


def test_unpaired_interval_is_wider_than_paired():
    paired, _ = paired_speedup(ROUNDS * 2, ROUNDS * 2)
    unpaired, flag = paired_speedup(ROUNDS * 2, [*ROUNDS, *ROUNDS, 100.0])
    assert not flag
    assert unpaired.high - unpaired.low > paired.high - paired.low


def test_the_baseline_itself_reads_exactly_one():
    (row,) = speedup_table(record(entry("torch_eager", ROUNDS)))
    assert (row.speedup.low, row.speedup.value, row.speedup.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("base", [None, entry("torch_eager", ROUNDS, status="failed", failure="oom", reason="x")])
def test_a_missing_or_failed_baseline_leaves_times_but_no_speedup(base):
    rows = speedup_table(record(*([base] if base else []), entry("triton_row", ROUNDS)))
    assert rows[-1].time.value == 100.0 and rows[-1].speedup is None
    if base:
        assert rows[0].time is None and rows[0].failure == "oom"


def test_rates_and_the_share_of_the_ceiling():
    work = {"flops": 7_000, "bytes_read": 4_000_000, "bytes_written": 5_000_000, "items": 8}
    (row,) = speedup_table(record(entry("torch_eager", [4000.0] * 9, **work)))
    # 8 of the 9 MB pair up as a copy at 4 TB/s (2 µs), 1 MB is left to write at 5 TB/s (0.2 µs).
    assert row.ceiling_share == pytest.approx(2200 / 4000) and row.bound == "memory"
    assert row.bytes_per_second == pytest.approx(9_000_000 / 4e-6)
    assert row.flops_per_second == pytest.approx(7_000 / 4e-6)
    assert row.items_per_second == pytest.approx(8 / 4e-6)


def test_the_later_of_memory_and_compute_is_the_ceiling():
    assert ceiling(CEILINGS, "compute", "float16", 7 * 10**9, (4_000, 0)).bound == "compute"
    assert ceiling(CEILINGS, "compute", "float16", 7 * 10**9, (4_000, 0)).least_ns == pytest.approx(10_000)
    assert ceiling(CEILINGS, "memory", "float16", 7, (4_000_000, 0)).least_ns == pytest.approx(1000)


def test_the_link_from_the_host_is_a_ceiling_of_its_own():
    linked = msgspec.structs.replace(CEILINGS, link=50e9)
    found = ceiling(linked, "link", "float16", 7 * 10**9, (50_000, 10**9))
    assert found.bound == "link" and found.least_ns == pytest.approx(1000)
    assert ceiling(CEILINGS, "link", "float16", 7, (50_000, 50_000)) is None
    assert ceiling(linked, "link", "float16", 7, (0, 50_000)) is None


@given(st.tuples(*[st.floats(1e11, 1e13)] * 3), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**6))
def test_a_mix_is_what_pairs_up_as_a_copy_and_the_rest(rates, read, written, more):
    copy, reads, writes = rates
    ceilings = Ceilings(copy=copy, read=reads, write=writes)
    paired = min(read, written)
    expected = 2 * paired / copy + (read - paired) / reads + (written - paired) / writes
    got = memory_time(ceilings, read, written)
    assert (got or 0.0) == pytest.approx(expected * 1e9)
    assert (memory_time(ceilings, read + more, written + more) or 0.0) > (got or 0.0)


def test_without_a_copy_reads_and_writes_add_up():
    assert memory_time(Ceilings(read=4e12, write=5e12), 4_000_000, 5_000_000) == pytest.approx(2000)


def test_no_ceiling_is_invented():
    assert ceiling(None, "memory", "float16", 1, (1, 1)) is None
    assert ceiling(CEILINGS, "compute", "float64", 10**9, (1, 1)) is None
    assert memory_time(Ceilings(read=1e12), 10, 10) is None
    assert memory_time(Ceilings(read=1e12), 1000, 0) == pytest.approx(1.0)
    assert memory_time(CEILINGS, 0, 0) is None
    assert compute_time(CEILINGS, "float32", 10) is None
    (row,) = speedup_table(record(entry("torch_eager", ROUNDS, bytes_read=10), ceilings=None))
    assert row.ceiling_share is None and row.bound == "" and row.bytes_per_second is not None


def test_group_means_count_only_cases_that_both_ran():
    rows = speedup_table(
        record(
            entry("torch_eager", [100.0] * 9, M=1),
            entry("triton_row", [50.0] * 9, M=1),
            entry("torch_eager", [100.0] * 9, M=2),
            entry("triton_row", [12.5] * 9, M=2),
            entry("torch_eager", [100.0] * 9, M=3),
            entry("triton_row", status="failed", failure="oom", reason="out of memory", M=3),
            entry("torch_eager", status="failed", failure="oom", reason="out of memory", M=4),
            entry("triton_row", [1.0] * 9, M=4),
        )
    )
    eager, triton = group_speedups(rows)
    assert triton.value == pytest.approx(4.0) and triton.coverage == "2 of 4"
    assert eager.value == 1.0 and eager.coverage == "3 of 4"


def test_a_group_with_nothing_comparable_has_no_mean():
    (group,) = group_speedups(speedup_table(record(entry("triton_row", ROUNDS))))
    assert group.value is None and group.coverage == "0 of 1"


def test_fastest_of_a_back_end_prefers_a_time_over_a_failure():
    rows = speedup_table(
        record(
            entry("triton_a", status="failed", failure="build", reason="x"),
            entry("triton_b", [30.0] * 9),
            entry("triton_c", [20.0] * 9),
        )
    )
    assert [row.implementation for row in fastest(rows, by=lambda row: row.backend)] == ["triton_c"]
    with pytest.raises(ValueError, match="two rows"):
        group_speedups(rows, by=lambda row: row.backend)


def test_error_ratio_is_taken_against_the_baselines_own_error():
    def accuracy(norm):
        return Accuracy(max_abs=norm, max_rel=norm, norm=norm, tolerance_used=0.1)

    rows = speedup_table(
        record(
            entry("torch_eager", ROUNDS, accuracy=accuracy(1e-3)), entry("triton_row", ROUNDS, accuracy=accuracy(2e-3))
        )
    )
    assert rows[1].error_ratio == pytest.approx(2.0)
    exact = speedup_table(record(entry("torch_eager", ROUNDS, accuracy=accuracy(0.0))))
    assert exact[0].error_ratio is None


def test_few_samples_have_no_interval_and_say_so():
    (row,) = speedup_table(record(entry("torch_eager", [1.0, 2.0])))
    assert (row.time.low, row.time.high) == (-math.inf, math.inf)


def test_another_quantity_can_be_tabled():
    measured = Measurement(
        implementation="torch_eager", dtype="float16", shape={"M": 1}, status="ok", samples={"call": [7.0] * 9}
    )
    assert speedup_table(record(measured), quantity="call")[0].time.value == 7.0
    assert speedup_table(record(measured))[0].time is None
