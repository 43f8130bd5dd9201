"""Implementation files keep the contract that lets two trees stand side by side in one process."""

from __future__ import annotations

import ast
import sys

import pytest

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.tree import BACKENDS, BASELINE, Tree
from tests.architecture.sources import ROOT, imports

IMPLS = ROOT / "impls"
TREE = Tree(IMPLS)
OPERATORS = TREE.operators()
PYTHON = sorted(IMPLS.rglob("*.py"))
IMPLEMENTATIONS = [implementation for operator in OPERATORS for implementation in TREE.implementations(operator)]
HEAVY = {"torch", "triton", "cupy", "numpy", "jax"}


def _id(path):
    return str(path.relative_to(IMPLS))


def _imports(path):
    return imports("impls." + ".".join(path.relative_to(IMPLS).with_suffix("").parts), path)


def test_there_are_operators():
    assert len(OPERATORS) >= 4


@pytest.mark.parametrize("path", PYTHON, ids=_id)
def test_imports_nothing_of_groundspeed_but_the_spec_its_operator(path):
    found = {one.target for one in _imports(path) if one.target.split(".")[0] == "groundspeed"}
    allowed = path.name == "spec.py" or path.parent.name == "_specs"  # what specs share
    wrong = [target for target in found if not (allowed and target.startswith("groundspeed.operator"))]
    assert not wrong


@pytest.mark.parametrize("path", PYTHON, ids=_id)
def test_imports_other_impls_relatively_only(path):
    """An absolute import would bring the checkout's file into the tree of another commit."""
    absolute = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(a.name.split(".")[0] == "impls" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "impls")
    ]
    assert not absolute


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_spec_imports_nothing_heavy_at_module_level(operator):
    path = TREE.spec_file(operator)
    eager = {one.target.split(".")[0] for one in _imports(path) if not one.lazy}
    assert not eager & HEAVY
    assert eager - {"groundspeed", "impls"} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_file_that_looks_like_an_implementation_is_one(operator):
    found = {file for implementation in TREE.implementations(operator) for file in implementation.files}
    like = {p for p in (IMPLS / operator).iterdir() if p.suffix == ".cu" or _named_like_one(p)}
    assert like == found


def _named_like_one(path):
    return path.suffix == ".py" and path.stem.partition("_")[0] in {*BACKENDS, *LIBRARIES} and "_" in path.stem


@pytest.mark.parametrize("operator", OPERATORS)
def test_has_the_baseline_and_every_back_end_or_the_reason_why_not(operator):
    spec = TREE.spec(operator)
    names = [implementation.name for implementation in TREE.implementations(operator)]
    assert names[0] == BASELINE
    assert ("torch_compile" in names) != ("torch_compile" in spec.missing)
    assert set(spec.missing) <= {*BACKENDS, "torch_compile"}
    absent = set(BACKENDS) - {implementation.backend for implementation in TREE.implementations(operator)}
    assert absent == set(spec.missing) & set(BACKENDS)
    assert all(len(reason) > 10 for reason in spec.missing.values())
    assert len(absent) <= 1


@pytest.mark.parametrize("operator", OPERATORS)
def test_ladders_name_implementations_that_exist(operator):
    names = {implementation.name for implementation in TREE.implementations(operator)}
    for ladder, rungs in TREE.spec(operator).ladders.items():
        assert set(rungs) <= names, ladder
        assert len(rungs) >= 2


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=lambda i: f"{i.operator}/{i.name}")
def test_says_its_idea_in_one_sentence(implementation):
    assert 10 <= len(implementation.idea) <= 200, implementation.idea
