"""On two GPUs: every implementation is right on every rank, and what is measured of them can be believed.

One command: ``python -m pytest -m gpu tests/ranks``.
"""

from __future__ import annotations

import pytest

from groundspeed.machine import visible_gpu_count
from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.operator import Case
from tests.core.scratch import make_tree
from tests.impls.judge import TREE
from tests.ranks.scratch import EAGER, SPEC, SPREAD, calls

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(visible_gpu_count() < 2, reason=f"needs two GPUs, {visible_gpu_count()} visible"),
]


def outcome(operator: str, cases: list[Case], tree: str = str(TREE.root), **changes: object) -> Outcome:
    from pathlib import Path

    from groundspeed.tree import Tree

    names = tuple(one.name for one in Tree(Path(tree)).implementations(operator))
    pairs = tuple((case.dtype, case.shape) for case in cases)
    job = Job(operator=operator, tree=tree, specs=tree, device="cuda", implementations=names, cases=pairs, **changes)
    return supervise(job, worker_environment({}), lambda progress: None)


@pytest.mark.parametrize("operator", SPREAD)
def test_every_implementation_is_right_on_both_ranks(operator):
    found = outcome(operator, list(TREE.spec(operator).check_cases), check_only=True)
    failed = [f"{row.implementation} {row.case_label}: {row.reason}" for row in found.rows.values() if row.failure]
    assert not found.problem and not failed
    done = {row.implementation for row in found.rows.values() if row.status == "ok"}
    assert {"torch_eager", "triton_push"} & done >= {"torch_eager"}
    assert any(name.startswith("cuda_") for name in done), "no kernel of our own ran: see its reason"


def test_large_vectors_take_more_rounds_than_one_and_stay_right():
    shapes = {
        "all_reduce": 40_000_003,
        "all_gather": 10_000_001,
        "reduce_scatter": 20_000_002,
        "sharded_relu": 50_000_001,
    }
    for operator, size in shapes.items():
        found = outcome(operator, [Case.of("float16", {"W": 2, "N": size})], check_only=True)
        failed = [f"{row.implementation}: {row.reason}" for row in found.rows.values() if row.failure]
        assert not found.problem and not failed, operator


def test_times_ceilings_and_bus_bandwidth_are_plausible():
    case = Case.of("float32", {"W": 2, "N": 16777216})
    found = outcome("all_reduce", [case], seconds=0.2)
    ceilings = found.ceilings
    assert ceilings is not None and 1e9 < ceilings.peer <= 1.05 * ceilings.peer_one_way < 1e12
    for row in found.rows.values():
        if row.status == "ok":
            cold = sorted(row.samples["device_cold"])[len(row.samples["device_cold"]) // 2]
            assert row.timer == "events" and row.bus_bytes == 4 * 16777216
            assert 0.02 < row.bus_bytes / cold * 1e9 / ceilings.peer < 1.1, row.implementation


def test_a_rank_that_dies_hangs_or_is_lost_costs_its_implementation_only(tmp_path):
    bad = {
        "torch_dies": calls("if rank == 1 and n == 3: os.kill(os.getpid(), signal.SIGSEGV)"),
        "torch_hangs": calls("if rank == 1 and n == 2: time.sleep(600)"),
        "torch_asserts": calls("if rank == 1 and n == 3: torch._assert_async(torch.zeros(1, device=x.device))"),
        "torch_raises": calls('if rank == 1 and n == 2: raise ValueError("no such sum")'),
        "torch_sound": EAGER,
    }
    tree = make_tree(tmp_path, {"total": {"spec": SPEC, "torch_eager": EAGER, **bad}})
    case = Case.of("float32", {"W": 2, "N": 64})
    found = outcome("total", [case], str(tree), limits={"check": 30.0, "prepare": 60.0}, seconds=0.05)
    rows = {row.implementation: row for row in found.rows.values()}
    assert rows["torch_eager"].status == rows["torch_sound"].status == "ok", rows
    for name in ("torch_dies", "torch_hangs", "torch_asserts", "torch_raises"):
        assert rows[name].status == "failed" and "rank" in rows[name].reason, rows[name]
