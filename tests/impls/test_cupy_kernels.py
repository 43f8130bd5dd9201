"""CuPy's row kernels are templates of what their launcher makes of them; CuPy itself compiles them on a GPU alone."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from groundspeed.tree import Tree
from tests.paths import ROOT

TREE = Tree(ROOT / "impls")
PARAMETERS = {"row_kernel": "typename T", "streamed_rows": "typename T", "held_rows": "typename T, int kPacks"}
FILES = [file for file in sorted((ROOT / "impls").glob("*/*.py")) if re.search("|".join(PARAMETERS), file.read_text())]


def launches(file: Path) -> list[tuple[str, str, str]]:
    """Launcher, the name in its first argument and the kernel's name, of each kernel that a file makes."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [
        (call.func.id, call.args[0].id, call.args[1].value)
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in PARAMETERS
        and isinstance(call.args[0], ast.Name)
        and isinstance(call.args[1], ast.Constant)
    ]


@pytest.fixture
def cupy(monkeypatch):
    """CuPy's name, so that files which import it load where it is not installed."""
    stub = ModuleType("cupy")
    stub.float32 = stub.float16 = None
    monkeypatch.setitem(sys.modules, "cupy", sys.modules.get("cupy", stub))


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("file", [file for file in FILES if launches(file)], ids=lambda file: "/".join(file.parts[-2:]))
def test_a_row_kernel_is_the_template_that_its_launcher_names(file):
    module = TREE.load(f"{file.parent.name}.{file.stem}")
    for launcher, source, kernel in launches(file):
        head = rf"template <{PARAMETERS[launcher]}>\s+__global__ void (?:\w+\([^)]*\) )?{kernel}\("
        assert re.search(head, getattr(module, source)), f"{launcher}({source}, {kernel!r}) does not find {head}"


def test_there_are_such_kernels():
    assert len([file for file in FILES if launches(file)]) >= 6


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("held", [1, 2])
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("length", [0, 8, 9, 256, 1000, 1024, 4096, 8192, 16384, 32768, 65536, 65544, 1 << 22])
def test_a_held_row_has_a_place_for_every_vector_within_the_bounds_of_its_kernel(length, lanes, held):
    packed_rows = TREE.load("_cupy.packed_rows")
    packs, threads = packed_rows.plan(length, lanes, held)
    assert threads % 32 == 0 and threads >= 32
    if packs > 0:
        assert packs * threads * lanes >= length
        assert packs * held <= 8
        assert threads <= (1024 if packs * held == 8 else 256)
    else:
        assert threads <= 512
        assert packs == (0 if length % lanes else packed_rows.WALKED)
        assert length % lanes or length > 1024 * lanes * (8 // held)


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("rows", [0, 1, 2, 16, 132, 1056, 1057, 65536])
@pytest.mark.parametrize("length", [0, 1, 1000, 16384, 16385, 50000, 32768, 1 << 22])
def test_chunks_of_row_sum_cover_a_row_and_none_is_empty(rows, length):
    chunks, chunk = TREE.load("row_sum.cupy_raw").chunks_of(rows, length, 132)
    assert chunks * chunk >= length > (chunks - 1) * chunk or (length == 0 and chunks == 1)
    assert chunks == 1 or chunk % 8 == 0
    assert chunks == 1 or (rows <= 1056 and length > 16384)
