"""What is watched of the harness and of what it is made of, and that nothing honest changes it."""

from __future__ import annotations

import ast
import builtins
import importlib
import pkgutil
import time
from pathlib import Path

import pytest
import torch

import groundspeed.measure
from groundspeed.measure import calls, sampling
from groundspeed.measure.referee import rules, tools, watched
from groundspeed.measure.timers import clock

HERE = Path(groundspeed.measure.__file__).parent


@pytest.fixture(autouse=True)
def back():
    tools.watch()
    yield
    tools.put_back()


def test_the_clocks_and_all_of_the_timers_classes_are_watched():
    names = tools.watched_names()
    assert {f"time.{name}" for name in ("perf_counter_ns", "monotonic", "time", "process_time")} <= names
    assert {"torch.autograd.profiler.profile", "torch.cuda.synchronize", "torch.equal", "torch.Tensor.copy_"} <= names
    assert {f"torch.cuda.streams.Event.{name}" for name in ("query", "record", "elapsed_time", "synchronize")} <= names
    assert {f"torch.cuda.graphs.CUDAGraph.{name}" for name in ("capture_begin", "replay")} <= names
    assert "torch.autograd.profiler.profile.__enter__" in names
    assert "torch._C._autograd._KinetoEvent.duration_ns" in names


def test_every_module_of_the_harness_that_is_loaded_is_watched_whole():
    names = tools.watched_names()
    for one in (clock, calls, sampling, rules):
        own = {name for name in vars(one) if not name.startswith("__")}
        assert {f"{one.__name__}.{name}" for name in own} <= names
    assert "groundspeed.measure.timers.clock.ClockTimer._sample" in names
    assert "groundspeed.measure.referee.rules.REFEREE.checks" in names


def _mentioned(module: str) -> set[str]:
    """Chains such as ``torch.cuda.Event`` in the functions of a module's source, begun by a name that it imports."""
    found = set()
    tree = ast.parse((HERE / module.replace(".", "/")).with_suffix(".py").read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    for node in (each for function in functions for part in _body(function) for each in ast.walk(part)):
        chain = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if chain and isinstance(node, ast.Name) and node.id in ("torch", "time", "profiler"):
            found.add(".".join(["torch.autograd.profiler" if node.id == "profiler" else node.id, *reversed(chain)]))
    return found


def _body(function: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    return [function.body] if isinstance(function, ast.Lambda) else list(function.body)


def _modules() -> list[str]:
    packages = [HERE / "timers", HERE / "referee"]
    return [f"{place.name}.{one.name}" for place in packages for one in pkgutil.iter_modules([str(place)])]


@pytest.mark.parametrize("module", [*_modules(), "calls", "sampling"])
def test_whatever_a_timer_or_the_referee_calls_of_torch_is_watched(module):
    """By its source, where ``tools`` goes by compiled code: of a timer too that cannot be imported without a GPU."""
    if module == "timers.probes":
        pytest.importorskip("triton")
    importlib.import_module(f"groundspeed.measure.{module}")
    tools.watch()
    names = tools.watched_names()
    for chain in _mentioned(module):
        owner, _, name = chain.rpartition(".")
        known = {"torch.cuda.Event": "torch.cuda.streams.Event", "torch.cuda.Stream": "torch.cuda.streams.Stream"}
        value = _value(chain)
        if callable(value) and owner in ("torch", "torch.cuda", "torch.Tensor", "time", "torch.autograd.profiler"):
            assert f"{known.get(owner, owner)}.{name}" in names, chain


def _value(chain: str) -> object:
    first, *rest = chain.split(".")
    found: object = {"torch": torch, "time": time}[first]
    for part in rest:
        found = getattr(found, part, None)
    return found


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (time, "perf_counter_ns", "time.perf_counter_ns"),
        (builtins, "float", "builtins.float"),
        (torch.Tensor, "copy_", "torch.Tensor.copy_"),
        (torch.cuda.Event, "query", "torch.cuda.streams.Event.query"),
        (clock, "_span", "groundspeed.measure.timers.clock._span"),
        (clock, "max", "groundspeed.measure.timers.clock.max"),
        (clock.ClockTimer, "collect", "groundspeed.measure.timers.clock.ClockTimer.collect"),
        (sampling.Budget, "__init__", "groundspeed.measure.sampling.Budget.__init__"),
    ],
)
def test_what_is_replaced_is_named_and_put_back(owner, name, told):
    before = getattr(owner, name, None)
    had = name in vars(owner)
    setattr(owner, name, lambda *arguments: None)
    try:
        assert tools.replaced() == (told,)
    finally:
        tools.put_back()
    assert not tools.replaced()
    assert (name in vars(owner)) == had and getattr(owner, name, None) is before


def test_an_object_that_never_changes_is_seen_to_change():
    checks = rules.REFEREE.checks
    object.__setattr__(rules.REFEREE, "checks", ())
    assert "groundspeed.measure.referee.rules.REFEREE.checks" in tools.replaced()
    tools.put_back()
    assert rules.REFEREE.checks is checks


def test_what_is_deleted_is_put_back():
    before = clock._span
    del clock._span
    assert tools.replaced() == ("groundspeed.measure.timers.clock._span",)
    tools.put_back()
    assert clock._span is before


def test_a_functions_code_is_part_of_it():
    def other(call):
        return 0.0

    real = clock._span.__code__
    clock._span.__code__ = other.__code__
    assert tools.replaced() == ("groundspeed.measure.timers.clock._span.__code__",)
    tools.put_back()
    assert clock._span.__code__ is real


def test_names_are_found_in_nested_code_and_behind_decorators():
    def inner():
        return [len(one) for one in sorted(())]

    class Some:
        @staticmethod
        def one():
            return max(())

        @property
        def two(self):
            return min(())

    found = set(watched.functions_in([inner, *vars(Some).values()]))
    assert {function.__name__ for function in found} == {"inner", "one", "two"}
    assert {"len", "sorted", "max", "min"} <= watched.names_in(found)


@pytest.mark.slow
def test_neither_a_compiler_nor_a_profile_changes_what_is_watched():
    assert torch.compile(lambda x: (x * 2).sum(), backend="eager")(torch.ones(3)) == 6
    with torch.autograd.profiler.profile(use_cpu=True, profile_memory=True):
        torch.ones(3)
    assert not tools.replaced()


def test_to_look_at_all_costs_little():
    start = time.perf_counter()
    for _ in range(20):
        tools.replaced()
    assert (time.perf_counter() - start) / 20 < 0.02  # 0.3 ms on two busy cores; once or twice in each trial
