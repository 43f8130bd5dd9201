"""Ranks that die, hang, raise, decline or disagree: the implementation fails, with the rank's number, and no other."""

from __future__ import annotations

import pytest

from tests.core.scratch import job, make_tree, rows_by_name, sweep
from tests.ranks.scratch import EAGER, SPEC, calls

pytestmark = pytest.mark.slow

BAD = {
    "torch_dies": calls('if rank == 1 and n == 3: print("no way on"); os.kill(os.getpid(), signal.SIGSEGV)'),
    "torch_exits": calls("pass", prepared="if rank == 1: os._exit(7)"),
    "torch_raises": calls('if rank == 1 and n == 2: raise ValueError("no such sum")'),
    "torch_in_prepare": calls("pass", prepared='if rank == 0: raise ValueError("not prepared")'),
    "torch_hangs": calls("if rank == 1 and n == 2: time.sleep(600)"),
    "torch_waits": calls("if rank == 1: return x * 2"),  # and leaves rank 0 alone in the collective
    "torch_disagrees": calls("pass", result="total(x) + (rank == 1)"),
    "torch_alone": calls("return x * max(1, 2 * (rank >= 0))"),
    "torch_stale": calls("pass", result="kept.clone()"),
    "torch_in_place": calls("pass", result="(total(x), rank == 1 and x.add_(1))[0]"),
    "torch_same_memory": calls("kept.copy_(total(x))", result="kept"),
    "torch_tired": calls('if rank == 1 and within("collect"): os.kill(os.getpid(), signal.SIGKILL)'),
    "torch_declines": EAGER.replace(
        "def prepare",
        'def unsupported(dtype, W, N):\n    return "no rank 1" if distributed.get_rank() else None\n\n\ndef prepare',
    ),
    "torch_sound": EAGER,
}
FAILURES = {
    "torch_dies": ("crash", "rank 1: it died of SIGSEGV: no way on"),
    "torch_exits": ("crash", "rank 1: it exited with status 7 too early"),
    "torch_raises": ("error", "rank 1: ValueError: no such sum (total/torch_raises.py:"),
    "torch_in_prepare": ("error", "rank 0: ValueError: not prepared (total/torch_in_prepare.py:"),
    "torch_hangs": ("timeout", "no answer within"),
    "torch_waits": ("timeout", "rank 0: no answer within 5 s, although rank 1 was done"),
    "torch_disagrees": ("incorrect", "rank 1: tolerance: "),
    "torch_alone": ("incorrect", "tolerance: "),
    "torch_stale": ("incorrect", "right before, wrong with inputs overwritten in place"),
    "torch_in_place": ("incorrect", "rank 1: inputs unchanged: modified input 'x'"),
    "torch_same_memory": ("incorrect", "rank 0: fresh memory"),
    "torch_tired": ("oom", "rank 1: it died of SIGKILL"),
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    tree = make_tree(tmp_path_factory.mktemp("ranks"), {"total": {"spec": SPEC, "torch_eager": EAGER, **BAD}})
    outcome = sweep(job(tree, "total", limits={"check": 10.0, "prepare": 10.0}))
    return outcome, rows_by_name(outcome)


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_a_fault_of_one_rank_fails_the_implementation_and_names_the_rank(swept, name):
    failure, reason = FAILURES[name]
    row = swept[1][name][1]
    assert (row.status, row.failure) == ("failed", failure), row
    assert reason in row.reason and "\n" not in row.reason


@pytest.mark.parametrize("name", ["torch_dies", "torch_raises", "torch_disagrees", "torch_sound", "torch_eager"])
def test_with_one_rank_there_is_nobody_to_disagree_with(swept, name):
    row = swept[1][name][0]
    assert row.status == "ok" and row.bus_bytes == 0, row


def test_one_that_a_rank_declines_is_skipped_with_its_words(swept):
    row = swept[1]["torch_declines"][1]
    assert (row.status, row.reason) == ("skipped", "rank 1: no rank 1")


def test_the_others_are_measured_together(swept):
    rows = [swept[1][name][1] for name in ("torch_eager", "torch_sound")]
    for row in rows:
        assert row.status == "ok", row
        rounds = {quantity: len(values) for quantity, values in row.samples.items()}
        assert rounds["device_cold"] == rounds["device_hot"] >= 9 and rounds["call"] == rounds["host"] == 15
        assert all(value > 0 for values in row.samples.values() for value in values)
        assert row.bus_bytes == 2 * 64 * 4 // 2 and row.accuracy is not None and row.case_digest
    assert len(rows[0].samples["device_cold"]) == len(rows[1].samples["device_cold"])  # they shared the rounds


def test_more_ranks_than_there_can_be_are_skipped_with_the_reason(swept):
    for rows in swept[1].values():
        assert rows[2].status == "skipped" and rows[2].reason.startswith("world size 4: on a CPU the ranks share")


def test_the_worker_outlived_its_ranks(swept):
    outcome = swept[0]
    assert outcome.problem == "" and outcome.environment.device == "cpu"
    assert "join" in outcome.seconds
