"""What a sweep imports before its workers begin."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from groundspeed.commands import sweeping
from groundspeed.selection import Selection
from groundspeed.tree import Tree
from tests.core.scratch import ADD, make_tree

COMPILED = '"""Compiled."""\n\nimport torch\n\nprepare = torch.compile\n'
SPOKEN_OF = ADD + "# in one kernel, as torch.compile makes it\n"


@pytest.mark.parametrize(("patterns", "uses"), [((), True), (("torch_compile",), True), (("torch_[!c]*",), False)])
def test_the_compiler_is_imported_for_what_is_selected(patterns, uses, tmp_path):
    tree = Tree(make_tree(tmp_path, {"double": {"torch_compile": COMPILED, "torch_add": SPOKEN_OF}}))
    run = SimpleNamespace(tree=tree, selection=Selection(operators=("double",), implementations=patterns))
    assert sweeping._uses_compiler([run]) is uses
