"""What a sweep imports before its workers begin, and what it tells of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from groundspeed.commands import sweeping
from groundspeed.measure.lane import CPU, Lane
from groundspeed.measure.workers import Workers
from groundspeed.selection import Selection
from groundspeed.session import compiles
from groundspeed.tree import Tree
from tests.core.scratch import ADD, make_tree

COMPILED = '"""Compiled."""\n\nimport torch\n\nprepare = torch.compile\n'
SPOKEN_OF = ADD + "# in one kernel, as torch.compile makes it\n"


class Display:
    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)

    def begin(self, *of): ...

    def end(self, *of): ...


@pytest.mark.parametrize(("patterns", "uses"), [((), True), (("torch_compile",), True), (("torch_[!c]*",), False)])
def test_the_compiler_is_imported_for_what_is_selected(patterns, uses, tmp_path):
    tree = Tree(make_tree(tmp_path, {"double": {"torch_compile": COMPILED, "torch_add": SPOKEN_OF}}))
    run = SimpleNamespace(tree=tree, selection=Selection(operators=("double",), implementations=patterns))
    assert compiles(run, "double") is uses


def test_why_workers_begin_without_the_compiler_is_said_once(monkeypatch):
    monkeypatch.setattr(sweeping, "_summary", lambda run, operator: "")
    monkeypatch.setattr(sweeping.durations, "able_to_time", lambda run, operator: ())
    monkeypatch.setattr(sweeping.session, "measure_operator", lambda *of: None)
    display = Display()
    shown = sweeping._Shown(display, {"a": None, "b": None}, several=False)
    workers = Workers({})
    workers._plan_again("its imports initialised CUDA")
    for operator in ("a", "b"):
        shown.measure(Lane(CPU, workers), operator)
    (line,) = display.said
    assert line.startswith("workers begin without torch.compile's imports")
    assert line.endswith("its imports initialised CUDA")
