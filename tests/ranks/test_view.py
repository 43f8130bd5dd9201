"""What a rank sees of an operator, which cases there can be, and the shapes and formulas of the collectives."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.errors import UserError
from groundspeed.measure.ranks.view import joined, own, parted, too_wide, view_of
from groundspeed.operator import Case
from tests.impls.judge import TREE, accepted
from tests.ranks.scratch import SPREAD


def held(spec, case, rank, seed=0):
    generator = torch.Generator().manual_seed(seed)
    view = view_of(spec, rank)
    made = view.inputs(generator, getattr(torch, case.dtype), torch.device("cpu"), **case.dims)
    return view, {name: value.tensor for name, value in made.items()}


@given(st.integers(1, 12), st.data())
def test_what_ranks_hold_is_joined_and_parted_again(world, data):
    rank = data.draw(st.integers(0, world - 1))
    ranks = [{"x": (number, "x"), "w": (number, "w")} for number in range(world)]
    together = joined(ranks, rank)
    assert parted(together, rank) == ranks and own(together) == ranks[rank]
    assert list(together)[:2] == ["x", "w"] and len(together) == 2 * world


def test_the_five_operators_are_those_with_a_world():
    assert tuple(name for name in TREE.operators() if TREE.spec(name).world) == SPREAD


@pytest.mark.parametrize("operator", SPREAD)
def test_every_rank_draws_the_same_and_knows_what_the_others_have(operator):
    spec = TREE.spec(operator)
    case = next(one for one in spec.check_cases if spec.world_size(one) == 2)
    first, second = (held(spec, case, rank)[1] for rank in range(2))
    for name, tensor in own(first).items():
        assert torch.equal(tensor, second[f"{name} of rank 0"])
        assert torch.equal(second[name], first[f"{name} of rank 1"])


@pytest.mark.parametrize("operator", SPREAD)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_answer_that_leaves_a_rank_out_is_refused(operator, dtype):
    spec = TREE.spec(operator)
    for case in (one for one in spec.check_cases if one.dtype == dtype and spec.world_size(one) == 2):
        view, tensors = held(spec, case, 0)
        wide = {name: tensor.double() for name, tensor in tensors.items()}
        expected = view.reference(**wide)
        assert accepted(spec, case, expected.to(getattr(torch, dtype)), expected), case.label
        alone = {name: value * (" of rank " not in name) for name, value in wide.items()}
        doubled = {name: value * (1 + (" of rank " not in name)) for name, value in wide.items()}
        wrong = view.reference(**(doubled if operator == "sharded_relu" else alone))
        assert not accepted(spec, case, wrong.to(getattr(torch, dtype)), expected), case.label


def test_the_reference_of_each_collective_is_the_collective():
    ranks = [{"x": torch.arange(6.0) + 10 * rank} for rank in range(3)]
    for rank in range(3):
        assert TREE.spec("all_reduce").reference(rank, ranks).tolist() == [30.0, 33, 36, 39, 42, 45]
        assert TREE.spec("all_gather").reference(rank, ranks).tolist() == [*range(6), *range(10, 16), *range(20, 26)]
    pieces = [TREE.spec("reduce_scatter").reference(rank, ranks).tolist() for rank in range(3)]
    assert pieces == [[30.0, 33], [36, 39], [42, 45]]


@pytest.mark.parametrize(
    ("operator", "factor", "size"),
    [
        ("all_reduce", lambda n: 2 * (n - 1) / n, lambda world, count: count),
        ("all_gather", lambda n: (n - 1) / n, lambda world, count: world * count),
        ("reduce_scatter", lambda n: (n - 1) / n, lambda world, count: world * count),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operator, factor, size):
    """algbw = S/t and busbw = algbw · factor (nccl-tests, doc/PERFORMANCE.md), so bus bytes are S · factor."""
    spec = TREE.spec(operator)
    for world in (1, 2, 4, 8):
        case = Case.of("bfloat16", {"W": world, "N": 4096})
        assert spec.bus_count(case) == pytest.approx(2 * size(world, 4096) * factor(world))


@pytest.mark.parametrize(
    ("device", "gpus", "world", "reason"),
    [
        ("cuda", 1, 1, None),
        ("cuda", 2, 2, None),
        ("cuda", 1, 2, "world size 2 needs 2 GPUs, 1 is visible"),
        ("cuda", 2, 8, "world size 8 needs 8 GPUs, 2 are visible"),
        ("cpu", 0, 2, None),
        ("cpu", 0, 4, "world size 4: on a CPU the ranks share its cores, and no more than 2 are started"),
    ],
)
def test_a_world_that_is_not_there_is_named(device, gpus, world, reason):
    spec = TREE.spec("all_reduce")
    assert too_wide(spec, Case.of("float32", {"W": world, "N": 8}), device, gpus) == reason


def test_inputs_that_are_no_list_of_ranks_are_refused():
    spec = dataclasses.replace(TREE.spec("all_reduce"), inputs=lambda *of, **shape: {"x": None})
    with pytest.raises(UserError, match="expected a list of 2 dicts, one a rank"):
        view_of(spec, 0).inputs(None, None, None, W=2, N=4)


def test_a_world_must_be_a_size_in_every_shape():
    spec = TREE.spec("all_reduce")
    with pytest.raises(UserError, match="W, the world size, is None"):
        dataclasses.replace(spec, check_shapes=({"N": 4},))
    with pytest.raises(UserError, match="bound is 'peer' without a world"):
        dataclasses.replace(spec, world="")


@given(st.integers(0, 1 << 20), st.integers(1, 16))
def test_shards_cover_a_vector_once_and_begin_where_vectors_can(size, world):
    module = TREE.load("sharded_relu.shards")
    cut = module.shards(size, world)
    assert len(cut) == world and cut[0][0] == 0 and cut[-1][1] == size
    assert all(one[1] == other[0] for one, other in itertools.pairwise(cut))
    assert all(first % module.ALIGNMENT == 0 or first == size for first, _ in cut)
    assert all(end - first <= module.shard_size(size, world) for first, end in cut)


@given(st.integers(0, 1 << 16), st.integers(1, 12))
def test_pieces_cover_a_shard_once(size, most):
    found = TREE.load("sharded_relu.shards").pieces(size, most)
    assert len(found) <= most and sum(end - first for first, end in found) == size
    assert all(one[1] == other[0] for one, other in itertools.pairwise(found))
