"""The operators over two ranks on this CPU: gloo for torch's implementations, the interpreter for Triton's kernels."""

from __future__ import annotations

import pytest

from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job, Side
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.operator import Case
from tests.core.scratch import sweep
from tests.impls.judge import TREE
from tests.ranks.scratch import SPREAD

pytestmark = pytest.mark.slow

EAGER = {
    "all_gather": ("torch_eager",),
    "all_reduce": ("torch_eager",),
    "reduce_scatter": ("torch_eager",),
    "sharded_relu": ("torch_eager", "torch_compile", "torch_local", "torch_overlap"),
    "tensor_parallel_mlp": ("torch_eager", "torch_overlap"),
}


def job(operator: str, cases: list[Case], names: tuple[str, ...], **changes: object) -> Job:
    root = str(TREE.root)
    pairs = tuple((case.dtype, case.shape) for case in cases)
    return Job(operator=operator, tree=root, specs=root, device="cpu", implementations=names, cases=pairs, **changes)


def of_two(operator: str, dtype: str) -> list[Case]:
    """The last two check cases of two ranks: sizes that nothing divides, and gaps or odd beginnings."""
    spec = TREE.spec(operator)
    return [case for case in spec.check_cases if case.dtype == dtype and spec.world_size(case) == 2][-2:]


def faults(outcome: Outcome) -> list[str]:
    rows = outcome.rows.values()
    return [f"{row.implementation} {row.case_label}: {row.reason}" for row in rows if row.status != "ok"]


@pytest.mark.parametrize("operator", SPREAD)
def test_torch_s_implementations_are_right_on_both_ranks(operator):
    names = EAGER[operator]
    outcome = sweep(job(operator, of_two(operator, "bfloat16"), names, check_only=True))
    assert not outcome.problem and not faults(outcome) and len(outcome.rows) == 2 * len(names)


@pytest.mark.parametrize("operator", ["all_gather", "all_reduce", "sharded_relu"])
def test_kernels_that_write_to_other_ranks_are_right_in_the_interpreter(operator):
    """Two processes, each with its own interpreter, meet through the flags of mailboxes that both have mapped."""
    one = job(operator, of_two(operator, "float16")[:1], ("torch_eager", TRITON[operator]), check_only=True)
    outcome = supervise(one, worker_environment({"TRITON_INTERPRET": "1"}), lambda progress: None)
    assert not outcome.problem and not faults(outcome) and len(outcome.rows) == 2


TRITON = {"all_gather": "triton_pull", "all_reduce": "triton_push", "sharded_relu": "triton_push"}


def test_compiled_and_eager_are_timed_in_the_same_rounds_of_both_ranks():
    case = Case.of("bfloat16", {"W": 2, "T": 64, "M": 128, "F": 512})
    outcome = sweep(job("tensor_parallel_mlp", [case], ("torch_eager", "torch_compile"), seconds=0.05))
    assert not outcome.problem and not faults(outcome)
    rounds = {len(row.samples["device_cold"]) for row in outcome.rows.values()}
    assert len(rounds) == 1 and min(rounds) >= 9
    for row in outcome.rows.values():
        assert row.timer == "clock" and row.bus_bytes == 64 * 128 * 2 and row.items == 64
        assert row.flops == 4 * 64 * 128 * 256 and row.peak_memory_bytes


def test_base_and_head_of_a_comparison_are_ranks_of_one_crew():
    case = Case.of("float32", {"W": 2, "N": 4096})
    labels = ("base/torch_eager", "head/torch_eager")
    sides = tuple(Side(label, str(TREE.root), f"ranks_{label[:4]}", "torch_eager", (case.label,)) for label in labels)
    outcome = sweep(job("all_reduce", [case], labels, sides=sides, rounds=9, seconds=0.05))
    assert not outcome.problem and not faults(outcome)
    assert [len(row.samples["device_cold"]) for row in outcome.rows.values()] == [9, 9]
