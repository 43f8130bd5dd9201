"""The gate measures everything where the harness changed, and the harness is all that measuring runs through."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from groundspeed.gate.config import HARNESS
from tests.architecture.sources import ROOT, imports, modules, within

PROJECT = modules("groundspeed")
ROOTS = ("groundspeed.measure", "groundspeed.backends")


def _reached() -> set[str]:
    """What measuring imports, late imports too, and what an implementation and a spec import of the project."""
    used = {one.target for name, path in modules("impls").items() for one in imports(name, path)}
    left = [name for name in PROJECT if within(name, *ROOTS) or name in used]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            packages = [name.rsplit(".", dots)[0] for dots in range(1, name.count(".") + 1)]
            left += [*packages, *(one.target for one in imports(name, PROJECT[name]) if one.target in PROJECT)]
    return found


def _patterns(path: str) -> list[str]:
    return [pattern for pattern in HARNESS if fnmatchcase(path, pattern)]


REACHED = {PROJECT[name].relative_to(ROOT).as_posix() for name in _reached()}


@pytest.mark.parametrize("path", sorted(REACHED))
def test_a_module_that_measuring_runs_through_is_of_the_harness(path):
    """Else a change of it alone would pass as one that touches nothing that is measured."""
    assert _patterns(path), "add it to HARNESS in groundspeed/gate/config.py, and to docs/gating.md"


@pytest.mark.parametrize("pattern", HARNESS)
def test_a_pattern_of_the_harness_is_of_something_that_measuring_runs_through(pattern):
    assert any(fnmatchcase(path, pattern) for path in REACHED)


def test_what_only_judges_or_prints_is_not_of_the_harness():
    """Measuring everything costs hours: it is not asked for where no number can have changed."""
    extra = {path.relative_to(ROOT).as_posix() for path in PROJECT.values()} - REACHED
    assert extra >= {"groundspeed/gate/markdown.py", "groundspeed/analysis/rule.py", "groundspeed/report/table.py"}
    assert not [path for path in sorted(extra) if _patterns(path)]


def test_the_known_ones_are_found():
    names = ("records", "analysis/stats", "digest", "kernel_names", "nvml", "selection", "gate/paired")
    assert {f"groundspeed/{name}.py" for name in names} <= REACHED
