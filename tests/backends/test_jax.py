"""JAX on the CPU: the exchange with torch, and every jax_* implementation against its oracle."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch

pytest.importorskip("jax", reason="jax is not installed: pip install 'groundspeed[dev]'")

from groundspeed.records import SUFFIX, read_record
from tests.backends.live import implementations, label, wrong_cases
from tests.cli import toy_project
from tests.impls.judge import TREE

IMPLEMENTATIONS = implementations("jax")


def test_there_are_some():
    assert len({implementation.operator for implementation in IMPLEMENTATIONS}) >= 8


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=label)
def test_is_right_on_every_check_case_and_reads_the_live_inputs(implementation):
    wrong, right = wrong_cases(implementation, leave_out={"float16"})  # XLA compiles it as it does bfloat16
    assert not wrong and right >= 8


@pytest.fixture(scope="module")
def exchange():
    return TREE.load("_jax.exchange")


def test_a_tensor_and_its_array_share_memory(exchange):
    tensor = torch.arange(64, dtype=torch.float32)
    array = exchange.as_array(tensor)
    tensor[3] = 99.0
    assert float(array[3]) == 99.0
    assert exchange.as_tensors(array, tensor.device).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("tensor", [torch.arange(32.0)[::2], torch.arange(33.0)[1:]], ids=["strided", "off alignment"])
def test_what_xla_cannot_read_as_it_lies_is_copied(exchange, tensor):
    array = exchange.as_array(tensor)
    assert array.tolist() == tensor.tolist()


def test_integers_keep_their_64_bits(exchange):
    assert int(exchange.as_array(torch.tensor([1 << 40]))[0]) == 1 << 40


TWICE = '''"""Twice x, by XLA."""

import jax
import torch

double = jax.jit(lambda x: x + x)


def prepare(x):
    return lambda: torch.from_dlpack(double(jax.dlpack.from_dlpack(x)).block_until_ready()) if x.numel() else x * 2
'''


BROKEN = '"""Its library cannot be loaded."""\n\nraise ImportError("libfoo.so.1: cannot open shared object file")\n'


def test_its_record_has_the_wheels_version_and_no_peak_memory_and_a_broken_one_stops_no_other(tmp_path):
    root = toy_project.make(tmp_path / "project", double={"jax_twice": TWICE, "jax_broken": BROKEN})
    only = ("--only", "double/jax_*", "--results", str(tmp_path / "results"))
    done = toy_project.groundspeed("run", *only, cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 1, done.stdout + done.stderr
    (path,) = (tmp_path / "results").rglob(f"double{SUFFIX}")
    record = read_record(path)
    wheels = ("jax", "jaxlib")
    assert record.header.environment.libraries == {name: importlib.metadata.version(name) for name in wheels}
    broken, row, eager = sorted(record.measurements, key=lambda one: one.implementation)
    assert broken.failure == "error" and "libfoo.so.1: cannot open shared object file" in broken.reason
    assert row.status == "ok" and row.peak_memory_bytes is None
    assert "peak memory is not measured: XLA allocates for itself, where torch does not count" in row.notes
    assert eager.peak_memory_bytes and not eager.notes


def test_outputs_are_fresh_memory(exchange):
    run = exchange.compiled(lambda x: x + 1, torch.ones(64))
    first, second = run(), run()
    assert first.data_ptr() != second.data_ptr() and first.tolist() == second.tolist() == [2.0] * 64
