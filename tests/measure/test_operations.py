"""Operations of a call told apart: their parts, bytes and FLOPs, and the record of a stream cut at its marks."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
import torch

from groundspeed.analysis.shares import Operation, busy, by_part
from groundspeed.errors import UserError
from groundspeed.measure import shares
from groundspeed.measure.operations import Watch, cpu_rates, parted, timed, watched
from groundspeed.measure.timers.train import FLUSH, MARK, Span, TimerError
from groundspeed.operator import Case
from groundspeed.tree import Tree
from tests.architecture.sources import ROOT

SMALL = Case.of("bfloat16", {"B": 1, "S": 64, "D": 128, "H": 2, "F": 512})


def seen(call) -> list[Operation]:
    watch = Watch()
    with watch:
        call()
    return watch.seen


def test_a_product_has_its_flops_and_the_bytes_of_its_factors() -> None:
    a, b, bias = torch.randn(3, 5), torch.randn(5, 7), torch.randn(7)
    (one,) = seen(lambda: torch.addmm(bias, a, b))
    assert one.name == "addmm" and one.flops == 2 * 3 * 5 * 7
    assert one.bytes_read == 4 * (15 + 35 + 7) and one.bytes_written == 4 * 21


def test_views_are_left_out_and_an_expanded_tensor_counts_what_is_there() -> None:
    x = torch.randn(4, 1)
    (one,) = seen(lambda: x.t().expand(6, 4) + 1)
    assert one.name == "add" and one.bytes_read == 16 and one.bytes_written == 96


def test_functions_announce_themselves_and_are_put_back() -> None:
    module = ModuleType("layer")

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def outer(x: torch.Tensor) -> torch.Tensor:
        return module.inner(x) + 1

    module.inner, module.outer = inner, outer
    watch, x = Watch(), torch.ones(2)
    with parted(module, {"outer": "whole", "inner": "half"}, watch), watch:
        module.outer(x).abs()
    assert [(one.part, one.name) for one in watch.seen] == [("half", "mul"), ("whole", "add"), ("other", "abs")]
    assert module.inner is inner and module.outer is outer


def test_functions_are_put_back_when_one_raises() -> None:
    module = ModuleType("layer")
    module.fails = fails = lambda: 1 / 0
    watch = Watch()
    with pytest.raises(ZeroDivisionError), parted(module, {"fails": "whole"}, watch):
        module.fails()
    assert module.fails is fails and watch.part == "other"


ONE = Operation("attention", "mm", 0.0, 10, 1, 1)


def spans(*names_and_lengths: tuple[str, int]) -> list[Span]:
    found, now = [], 0
    for name, length in names_and_lengths:
        found.append(Span(name, now, now + length))
        now += length + 5
    return found


def test_a_record_is_cut_at_its_marks() -> None:
    record = spans(
        (f"{FLUSH}_0", 99), (MARK, 2), ("gemm", 30), ("splitk", 4), (MARK, 2), (MARK, 2), ("copy", 7), (MARK, 2)
    )
    assert [one.ns for one in timed([ONE, ONE, ONE], record)] == [34.0, 0.0, 7.0]


@pytest.mark.parametrize(
    "record",
    [
        spans((MARK, 2), ("gemm", 30), (MARK, 2)),
        spans((MARK, 2), ("gemm", 30), (MARK, 2), (MARK, 2), ("late", 3)),
        spans((MARK, 2), (MARK, 2), (MARK, 2), (MARK, 2)),
    ],
    ids=["a mark is lost", "something runs behind the last", "a mark too many"],
)
def test_an_incomplete_record_is_refused(record: list[Span]) -> None:
    with pytest.raises(TimerError, match="3 marks launched"):
        timed([ONE, ONE], record)


def test_calls_that_differ_are_refused() -> None:
    turn = iter(range(100))

    def call(watch: Watch) -> None:
        torch.ones(2) + 1 if next(turn) % 2 else torch.ones(2) * 2

    with pytest.raises(TimerError, match="other operations"):
        watched(call, "cpu")


def test_a_cpu_has_rates() -> None:
    copied, multiplied = cpu_rates(torch.float32)
    assert 1e8 < copied < 1e13 and 1e7 < multiplied < 1e14


def test_a_layer_is_taken_apart_on_a_cpu() -> None:
    tree = Tree(ROOT / "impls")
    taken = shares.take_apart(tree, SMALL, "cpu")
    names = [one.name for one in taken.operations]
    assert names.count("addmm") == 6 and names.count("bmm") == 2 and "native_layer_norm" in names
    assert sum(one.flops for one in taken.operations) == 2 * 64 * (4 * 128 * 128 + 2 * 128 * 512 + 2 * 64 * 128)
    found = {share.label: share for share in by_part(taken.operations, tuple(shares.PARTS.values()))}
    assert all(found[part].ns > 0 for part in shares.PARTS.values())
    assert found["other"].fraction < 0.5 and taken.call_ns > 0
    products = {one.part for one in taken.operations if one.name in ("addmm", "bmm")}
    assert products == {"attention", "FFN"}


def test_a_layer_without_its_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(ROOT / "impls")
    module = tree.load("transformer_layer.torch_eager")
    with monkeypatch.context() as patched:
        patched.delattr(module, "feed_forward")
        with pytest.raises(UserError, match="has no function feed_forward"):
            shares.take_apart(tree, SMALL, "cpu")


@pytest.mark.gpu
def test_kernels_of_a_layer_are_told_apart_on_a_gpu() -> None:
    case = Case.of("bfloat16", {"B": 1, "S": 512, "D": 1024, "H": 16, "F": 4096})
    taken = shares.take_apart(Tree(ROOT / "impls"), case, "cuda")
    products = [one for one in taken.operations if one.flops]
    assert len(products) == 8 and all(one.ns > 0 for one in products)
    assert 0 < busy(taken.operations) < 1.05 * taken.call_ns
    again = shares.take_apart(Tree(ROOT / "impls"), case, "cuda")
    assert busy(again.operations) == pytest.approx(busy(taken.operations), rel=0.1)
    assert replace(taken.operations[0], ns=0.0) == replace(again.operations[0], ns=0.0)
