"""torch.compile between cases and in timed calls; and workers that never meet it never import it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from types import ModuleType

import pytest

from groundspeed.measure import compilations
from groundspeed.measure.process import worker_environment
from groundspeed.measure.supervisor import supervise
from groundspeed.measure.workers import Workers
from tests.core.scratch import job, make_tree, rows_by_name, sweep

WITHOUT = '''"""Looks for the compiler in its process at every step."""

import sys


def look():
    found = [name for name in sys.modules if name.startswith(FORBIDDEN)]
    assert not found, found[:3]


def prepare(x):
    def run():
        look()
        return x * 2

    look()
    return run
'''
# A size that is not what it was makes torch.compile try symbols, unless it has forgotten what it was.
COMPILES = '''"""Compiles in prepare, and refuses to be compiled for a size that varies."""

import sys
import torch

assert AT_IMPORT == ("torch._dynamo" in sys.modules)
compiled = 0


def for_this_size_alone(graph, inputs):
    global compiled
    compiled += 1
    assert all(isinstance(size, int) for tensor in inputs for size in tensor.shape), "a size is a symbol"
    return graph.forward


def double(x):
    return x * 2


def prepare(x):
    before = compiled
    function = getattr(torch, NAME)(double, backend=for_this_size_alone)
    function(x)
    assert compiled == before + 1, "nothing was forgotten"

    def run():
        assert compiled == before + 1, "something was forgotten inside a case"
        return function(x)

    return run
'''
COMPILES_WHILE_TIMED = '''"""Compiles in its first timed call, whenever it is prepared."""

import sys
import torch

assert AT_IMPORT == ("torch._dynamo" in sys.modules)


def timed():
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "collect":
        frame = frame.f_back
    return frame is not None


def prepare(x):
    done = []

    def run():
        if timed() and not done:
            done.append(1)
            fresh = {}
            exec("def double(x): return x * 2", fresh)
            return getattr(torch, NAME)(fresh["double"], backend="eager")(x)
        return x * 2

    return run
'''
# With the name in the code the worker imports the compiler first; a name that it does not see comes as a surprise.
SEEN = [pytest.param("torch.compile.__name__", True, id="expected"), pytest.param("'com' 'pile'", False, id="not")]


def written(text: str, name: str, seen: bool) -> str:
    return text.replace("NAME", name).replace("AT_IMPORT", str(seen))


class FrontEnd(ModuleType):
    def __init__(self) -> None:
        super().__init__("torch._dynamo")
        self.utils = ModuleType("torch._dynamo.utils")
        self.utils.counters = defaultdict(Counter)
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1


@pytest.fixture
def front_end(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.cudagraph_trees", raising=False)
    monkeypatch.setitem(sys.modules, "torch._dynamo", one := FrontEnd())
    return one


def test_where_it_was_never_imported_nothing_was_compiled(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert compilations.count() == 0
    compilations.reset()
    assert "torch._dynamo" not in sys.modules


def test_what_was_imported_and_did_nothing_is_not_reset(front_end):
    assert compilations.count() == 0  # this very look makes a counter, which counts nothing
    compilations.reset()
    assert front_end.resets == 0


@pytest.mark.parametrize(("about", "what"), [("stats", "unique_graphs"), ("frames", "total"), ("inductor", "x")])
def test_once_it_has_looked_at_anything_each_case_begins_anew(front_end, about, what):
    front_end.utils.counters[about][what] += 1
    compilations.reset()
    compilations.reset()
    assert front_end.resets == 2 and compilations.count() == (about == "stats")


def test_where_the_reset_costs_no_import_nobody_asks(front_end, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", ModuleType("cudagraph_trees"))
    compilations.reset()
    assert front_end.resets == 1


@pytest.mark.slow
@pytest.mark.parametrize("forked", [True, False])
def test_a_worker_without_torch_compile_imports_none_of_it(forked, tmp_path):
    text = WITHOUT.replace("FORBIDDEN", "('torch._dynamo', 'torch._inductor')")
    root = make_tree(tmp_path, {"double": {"torch_without": text + "# of torch.compile, it says\n"}})
    own = worker_environment({})
    outcome = sweep(job(root)) if forked else supervise(job(root), own, lambda progress: None)
    assert {row.status for row in outcome.rows.values()} == {"ok"}, [row.reason for row in outcome.rows.values()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seen"), SEEN)
def test_what_was_compiled_is_forgotten_between_cases_and_never_inside_one(name, seen, tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_compiles": written(COMPILES, name, seen)}})
    rows = rows_by_name(sweep(job(root)))["torch_compiles"]
    assert [row.status for row in rows] == ["ok", "ok"], [row.reason for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seen"), SEEN)
def test_a_compilation_in_a_timed_call_is_caught(name, seen, tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_late": written(COMPILES_WHILE_TIMED, name, seen)}})
    rows = rows_by_name(sweep(job(root)))
    assert {(row.failure, row.reason) for row in rows["torch_late"]} == {
        ("error", "torch.compile compiled inside the timed region")
    }
    assert [row.status for row in rows["torch_eager"]] == ["ok", "ok"], "nobody else is blamed"


@pytest.mark.slow
def test_after_a_nursery_with_the_compiler_comes_one_with_its_front_end(tmp_path):
    text = WITHOUT.replace("FORBIDDEN", "'torch._inductor.compile_fx'") + "\n\nassert 'torch._dynamo' in sys.modules\n"
    root = make_tree(tmp_path, {"double": {"torch_without": text}})
    with Workers(worker_environment({})) as own:
        own._plans.pop(0)  # as if that had been lost
        outcome = supervise(job(root), own.environment, lambda progress: None, workers=own)
    assert {row.status for row in outcome.rows.values()} == {"ok"}, [row.reason for row in outcome.rows.values()]
