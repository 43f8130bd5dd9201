"""What goes wrong on a real GPU: each fault is its implementation's own, and the others are measured as if alone."""

from __future__ import annotations

import pytest
import torch

from tests.core.scratch import ADD, calls, job, make_tree, rows_by_name, sweep

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

# A store 4 TiB behind the output: no page of it is mapped.
ILLEGAL = '''"""Stores far outside of its output."""

import torch
import triton
import triton.language as tl


@triton.jit
def stray(y_ptr, far):
    tl.store(y_ptr + far, 1.0)


def prepare(x):
    def run():
        y = torch.empty_like(x)
        stray[(1,)](y, 1 << 40)
        return y

    return run
'''
ASSERTS = calls("x[torch.full((1,), 1 << 40, device=x.device)]")
ALL_MEMORY = "torch.cuda.get_device_properties(x.device).total_memory"
TOO_LARGE = calls(f"torch.empty(10 * {ALL_MEMORY}, dtype=torch.uint8, device=x.device)")
LATE_TOO_LARGE = calls(f"if within('collect'): torch.empty(10 * {ALL_MEMORY}, dtype=torch.uint8, device=x.device)")
HANGS = calls("if n == 3: torch.cuda._sleep(1 << 62)")
KILLED = calls("if n == 3: os.kill(os.getpid(), signal.SIGKILL)")

FAULTS = {
    # file, failure, words of the reason
    "triton_illegal": (ILLEGAL, "crash", "illegal memory access"),
    "torch_asserts": (ASSERTS, "crash", "device-side assert"),
    "torch_too_large": (TOO_LARGE, "oom", "out of memory"),
    "torch_late_too_large": (LATE_TOO_LARGE, "oom", "out of memory"),
    "torch_hangs": (HANGS, "timeout", "no sign of life for 10 s"),
    "torch_killed": (KILLED, "oom", "SIGKILL"),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    files = {"torch_add": ADD, **{name: text for name, (text, *_) in FAULTS.items()}}
    root = make_tree(tmp_path_factory.mktemp("gpu_faults"), {"double": files})
    outcome = sweep(job(root, device="cuda", seconds=0.1, limits={"check": 10.0}))
    return outcome, rows_by_name(outcome)


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_named_and_stays_its_own(faulty, name):
    _, failure, word = FAULTS[name]
    for row in faulty[1][name]:
        assert (row.status, row.failure) == ("failed", failure), row.reason
        assert word in row.reason and "\n" not in row.reason, row.reason


@pytest.mark.parametrize("name", ["torch_eager", "torch_add"])
def test_the_others_are_measured_together(faulty, name):
    outcome, rows = faulty
    assert outcome.problem == "" and outcome.environment.device == "cuda"
    assert [(row.status, row.reason) for row in rows[name]] == [("ok", "")] * 2
    for row, eager in zip(rows[name], rows["torch_eager"], strict=True):
        assert row.samples and len(row.samples["device_cold"]) == len(eager.samples["device_cold"]) >= 9


def test_the_gpu_is_as_good_as_before(faulty):
    free, total = torch.cuda.mem_get_info()
    assert free > 0.5 * total, "a dead worker's memory was not given back"
    assert float(torch.ones(1000, device="cuda").sum()) == 1000.0


def test_a_case_that_no_gpu_can_hold_is_skipped_with_what_it_needs(tmp_path):
    """The spec's own inputs, ten times the GPU's memory: no implementation is accused, and the other case is done."""
    elements = 10 * torch.cuda.get_device_properties(0).total_memory // 4
    root = make_tree(tmp_path, {"double": {"torch_add": ADD}})
    cases = (("float32", (("N", elements),)), ("float32", (("N", 64),)))
    outcome = sweep(job(root, device="cuda", cases=cases))
    for too_large, small in rows_by_name(outcome).values():
        assert too_large.status == "skipped" and "GB is free" in too_large.reason
        assert small.status == "ok"
