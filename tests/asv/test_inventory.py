"""What asv asks for: parameters from specs and file names, versions that hold as long as the computation does."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundspeed import asv_inventory
from groundspeed.asv_inventory import Entry
from groundspeed.tree import Tree
from tests.asv.scratch import Scratch, make_scratch


@pytest.fixture
def project(tmp_path: Path) -> Scratch:
    project = make_scratch(tmp_path, ("relu", "softmax"))
    project.implementation("softmax", "triton_row")
    return project


def entry(project: Scratch, operator: str) -> Entry:
    found = {entry.operator: entry for entry in asv_inventory.take(_fresh_tree(project)).entries}
    return found[operator]


def _fresh_tree(project: Scratch) -> Tree:
    _fresh_tree.count = getattr(_fresh_tree, "count", 0) + 1  # type: ignore[attr-defined]
    return Tree(project.root / "impls", package=f"fresh_{_fresh_tree.count}")  # type: ignore[attr-defined]


def edit(project: Scratch, operator: str, old: str, new: str) -> None:
    path = project.root / "impls" / operator / "spec.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new) + "\n")


def test_parameters_come_from_the_spec_and_the_names_of_files(project: Scratch) -> None:
    assert entry(project, "softmax").parameters == [
        ["torch_eager", "triton_row"],
        ["float32", "float16"],
        ["N=1024", "N=4096"],
    ]


def test_a_broken_spec_is_one_line_and_costs_its_operator_only(project: Scratch) -> None:
    project.write("impls/relu/spec.py", "SPEC = Oprator()\n")
    inventory = asv_inventory.take(_fresh_tree(project))
    assert [entry.operator for entry in inventory.entries] == ["softmax"]
    assert len(inventory.broken) == 1
    assert "relu" in inventory.broken[0]
    assert "Oprator" in inventory.broken[0]
    assert "\n" not in inventory.broken[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""softmax: a stand-in."""', '"""softmax, said otherwise."""\n# and a comment'),
        ('bench_shapes=({"N": 1024}, {"N": 4096})', 'bench_shapes=({"N": 1024}, {"N": 4096}, {"N": 9})'),
        ("flops=lambda N: N", "flops=lambda N: 5 * N"),
    ],
)
def test_a_version_outlives_what_computes_the_same(project: Scratch, old: str, new: str) -> None:
    before = entry(project, "softmax").version
    edit(project, "softmax", old, new)
    assert entry(project, "softmax").version == before


@pytest.mark.parametrize(
    ("old", "new"),
    [("x.clamp(min=0)", "x.clamp(min=1)"), ("torch.randn(N", "torch.rand(N")],
)
def test_a_version_ends_where_the_computation_changes(project: Scratch, old: str, new: str) -> None:
    before = entry(project, "softmax").version
    edit(project, "softmax", old, new)
    assert entry(project, "softmax").version != before


def test_a_version_ends_where_the_way_of_measuring_changes(project: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry(project, "softmax").version
    monkeypatch.setattr(asv_inventory, "SWEEP_VERSION", "next")
    assert entry(project, "softmax").version != before


def test_a_run_keeps_the_lists_it_began_with(project: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = tmp_path / "fixed.json"
    asv_inventory.write(fixed, asv_inventory.take(_fresh_tree(project)))
    project.implementation("softmax", "cuda_new")
    monkeypatch.delenv(asv_inventory.VARIABLE, raising=False)
    assert "cuda_new" in {
        name for entry in asv_inventory.current(project.root).entries for name in entry.implementations
    }
    monkeypatch.setenv(asv_inventory.VARIABLE, str(fixed))
    during = {name for entry in asv_inventory.current(project.root).entries for name in entry.implementations}
    assert during == {"torch_eager", "triton_row"}
