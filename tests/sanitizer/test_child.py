"""The watched process: inputs of just their bytes, and a word on every case."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.measure.process import worker_environment
from groundspeed.operator import Case, strided
from groundspeed.sanitizer.child import copied, device_inputs, run_cases
from groundspeed.sanitizer.protocol import Began, Declined, Finished, Raised, Ran, Request, read_events
from groundspeed.tree import Tree
from tests.cli import toy_project

DECLINES = """
def prepare(x):
    return lambda: x * 2


def unsupported(dtype, N):
    return "N is odd" if N % 2 else None
"""
RAISES = """
def prepare(x):
    if len(x) == 1:
        raise ValueError("no single one\\nsecond line")
    return lambda: x * 2
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    files = {"torch_declines": DECLINES, "torch_raises": RAISES, "torch_broken": "def prepare(x:\n"}
    return toy_project.make(tmp_path_factory.mktemp("toy") / "p", double=files) / "impls"


def request(root, name: str) -> Request:
    shapes = tuple(("float32", (("N", size),)) for size in (0, 1, 64))
    return Request(str(root), "double", name, shapes, device="cpu")


def told(root, name: str):
    events = []
    run_cases(request(root, name), events.append)
    return events


def test_every_case_is_begun_and_ended(root):
    labels = ["float32 N=0", "float32 N=1", "float32 N=64"]
    expected = [event for label in labels for event in (Began(label), Ran(label))]
    assert told(root, "torch_eager") == [*expected, Finished()]


def test_a_case_that_is_declined_stops_nothing(root):
    assert told(root, "torch_declines")[2:4] == [Began("float32 N=1"), Declined("float32 N=1", "N is odd")]
    assert told(root, "torch_declines")[-1] == Finished()


def test_where_the_first_that_is_taken_is_enough_it_is_the_last(root):
    shapes = tuple(("float32", (("N", size),)) for size in (1, 3, 64, 128))
    asked = Request(str(root), "double", "torch_declines", shapes, device="cpu", first_only=True)
    events = []
    run_cases(asked, events.append)
    declined = [
        event for size in (1, 3) for event in (Began(f"float32 N={size}"), Declined(f"float32 N={size}", "N is odd"))
    ]
    assert events == [*declined, Began("float32 N=64"), Ran("float32 N=64"), Finished()]


def test_one_that_raises_is_the_last_in_one_line(root):
    assert told(root, "torch_raises")[2:] == [
        Began("float32 N=1"),
        Raised("float32 N=1", "ValueError: no single one"),
    ]
    (only,) = told(root, "torch_broken")
    assert isinstance(only, Raised) and only.case == "" and only.message.startswith("SyntaxError")


def test_another_packages_implementation_is_run_from_its_own_folder(root, tmp_path, monkeypatch):
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "torch_theirs.py").write_text(toy_project.ADD)
    guest = Tree(tmp_path)
    monkeypatch.setattr("groundspeed.sanitizer.child.tree_with_guests", lambda path: Tree(path, guests=(guest,)))
    assert told(root, "torch_theirs")[-1] == Finished()


def test_as_a_process_it_leaves_its_events_and_status_0(root, tmp_path):
    (tmp_path / "request").write_bytes(msgspec.json.encode(request(root, "torch_raises")))
    command = [sys.executable, "-m", "groundspeed.sanitizer.child", str(tmp_path / "request"), str(tmp_path / "events")]
    done = subprocess.run(command, env=worker_environment({}), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "second line" in done.stderr
    assert read_events(tmp_path / "events") == told(root, "torch_raises")
    with open(tmp_path / "events", "ab") as file:
        file.write(b'{"type":"Fin')  # it died while it wrote
    assert read_events(tmp_path / "events") == told(root, "torch_raises")
    assert read_events(tmp_path / "nowhere") == []


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_inputs_are_the_specs_own(root, dtype: str):
    spec = Tree(root).spec("double")
    made = device_inputs(spec, Case.of(dtype, {"N": 5}), "cpu", 0)
    assert list(made) == ["x"] and made["x"].dtype is getattr(torch, dtype) and made["x"].shape == (5,)


@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    offset=st.integers(0, 3),
    gaps=st.booleans(),
    turned=st.booleans(),
)
def test_a_copy_keeps_layout_and_offset_and_ends_with_its_last_element(shape, offset, gaps, turned):
    """Whatever lies behind the last element is another allocation's: an overrun by one element must be one."""
    size = 1
    for length in shape:
        size *= length
    original = torch.arange(offset + size, dtype=torch.int32)[offset:].view(shape)
    original = strided(original) if gaps else original
    original = original.mT if turned and len(shape) > 1 else original
    copy = copied(original, "cpu")
    assert torch.equal(copy, original) and copy.dtype == original.dtype
    if original.numel():
        assert copy.stride() == original.stride() and copy.storage_offset() == original.storage_offset()
        last = copy.storage_offset() + sum((n - 1) * s for n, s in zip(copy.shape, copy.stride(), strict=True))
        assert copy.untyped_storage().nbytes() == 4 * (last + 1)
        assert copy.untyped_storage().data_ptr() != original.untyped_storage().data_ptr()
