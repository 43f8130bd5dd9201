"""Operators and implementations as they are typed."""

from __future__ import annotations

import pytest

from groundspeed.errors import UserError
from groundspeed.project import Target, parse_targets
from groundspeed.tree import Tree
from tests.cli import toy_project

FILE = '"""Twice x."""\n\n\ndef prepare(x):\n    return lambda: x + x\n'


@pytest.fixture
def tree(tmp_path):
    ours = {"double": {"torch_add": FILE, "triton_add": FILE}, "dozen": {"torch_add": FILE}}
    return Tree(toy_project.make(tmp_path, **ours) / "impls")


@pytest.mark.parametrize(
    ("texts", "targets"),
    [
        ([], []),
        (["double"], [Target("double", None)]),
        (["double/tri*"], [Target("double", "tri*")]),
        (["do*"], [Target("double", None), Target("dozen", None)]),
        (["*/torch_add"], [Target("double", "torch_add"), Target("dozen", "torch_add")]),
        (["*/triton_*"], [Target("double", "triton_*")]),  # an operator that has none is not asked
        (["do[uv]*/torch_*", "dozen"], [Target("double", "torch_*"), Target("dozen", None)]),
    ],
)
def test_a_pattern_stands_for_every_operator_that_it_fits(tree, texts, targets):
    assert parse_targets(texts, tree) == targets


@pytest.mark.parametrize("text", ["x*", "*/cupy_*", "x*/torch_add"])
def test_one_that_fits_nothing_is_refused(tree, text):
    with pytest.raises(UserError) as caught:
        parse_targets([text], tree)
    assert str(caught.value) == f"nothing matches {text!r}; type: groundspeed list"


def test_a_name_that_is_not_there_is_told_the_nearest(tree):
    with pytest.raises(UserError, match="unknown operator 'dubble': did you mean 'double'"):
        parse_targets(["double", "dubble/torch_add"], tree)
