"""What a call's time goes to, from operations whose shares can be said beforehand."""

from __future__ import annotations

import pytest

from groundspeed.analysis.shares import Operation, busy, by_kind, by_part, kind, least_ns
from groundspeed.records import Ceilings

# a byte a nanosecond in every direction, a thousand operations a nanosecond
CEILINGS = Ceilings(copy=1e9, read=1e9, write=1e9, matmul={"float16": 1e12})

PRODUCT = Operation("attention", "mm", 600.0, flops=500_000, bytes_read=200, bytes_written=100)
SUM = Operation("FFN", "add", 300.0, flops=0, bytes_read=200, bytes_written=100)
COPY = Operation("somewhere", "clone", 100.0, flops=0, bytes_read=50, bytes_written=50)
ALL = (PRODUCT, SUM, COPY)


def test_the_nearer_ceiling_names_the_kind() -> None:
    assert kind(PRODUCT, CEILINGS, "float16") == "compute"  # 500 ns against 300
    assert kind(SUM, CEILINGS, "float16") == "memory"
    slim = Operation("attention", "mm", 600.0, flops=200_000, bytes_read=200, bytes_written=100)
    assert kind(slim, CEILINGS, "float16") == "memory"  # 200 ns against 300


def test_a_product_in_a_dtype_without_a_rate_is_not_called_computing() -> None:
    assert kind(PRODUCT, CEILINGS, "bfloat16") == "memory"


def test_the_least_time_is_the_later_of_both() -> None:
    assert least_ns(PRODUCT, CEILINGS, "float16") == pytest.approx(500.0)
    assert least_ns(SUM, CEILINGS, "float16") == pytest.approx(300.0)
    assert least_ns(SUM, Ceilings(), "float16") == 0.0


def test_parts_are_shares_of_the_busy_time_and_strangers_are_other() -> None:
    shares = by_part(ALL, ("attention", "FFN", "norms"))
    assert [share.label for share in shares] == ["attention", "FFN", "norms", "other"]
    assert [share.fraction for share in shares] == pytest.approx([0.6, 0.3, 0.0, 0.1])
    assert sum(share.ns for share in shares) == busy(ALL) == 1000.0


def test_what_a_call_takes_beyond_the_busy_time_is_launching() -> None:
    shares = {share.label: share for share in by_kind(ALL, 1250.0, CEILINGS, "float16")}
    assert shares["launch"].ns == 250.0 and shares["launch"].fraction == pytest.approx(0.2)
    assert shares["compute"].ns == 600.0 and shares["memory"].ns == 400.0
    assert sum(share.fraction for share in shares.values()) == pytest.approx(1.0)


def test_a_call_shorter_than_its_operations_leaves_nothing_to_launching() -> None:
    shares = {share.label: share for share in by_kind(ALL, 900.0, CEILINGS, "float16")}
    assert shares["launch"].ns == 0.0
    assert shares["compute"].fraction == pytest.approx(0.6)


def test_nothing_has_no_shares() -> None:
    assert {share.fraction for share in (*by_part((), ("FFN",)), *by_kind((), 0.0, CEILINGS, "float16"))} == {0.0}
