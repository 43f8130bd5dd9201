"""Programs that people start by ``python -m`` end with a line and status 130 when they are interrupted."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import modules

# Started by the project itself, which ends them; people never see their output.
CHILDREN = {
    "groundspeed.calibrate.child",
    "groundspeed.calibrate.ncu_target",
    "groundspeed.measure.first_call",
    "groundspeed.measure.nursery",
    "groundspeed.measure.shares",
    "groundspeed.measure.worker",
    "groundspeed.profiling.child",
    "groundspeed.sanitizer.child",
    "dashboard.store.worker",
}
SOURCES = {name: path.read_text(encoding="utf-8") for name, path in modules("groundspeed", "dashboard").items()}


def _runs_as_a_program(source: str) -> bool:
    tests = [ast.unparse(node.test) for node in ast.parse(source).body if isinstance(node, ast.If)]
    return "__name__ == '__main__'" in tests


PROGRAMS = {name for name, source in SOURCES.items() if _runs_as_a_program(source)}


def test_the_known_ones_are_found():
    assert {"groundspeed.gate.soak", "groundspeed.gate.trials.__main__", "groundspeed.cli"} <= PROGRAMS
    assert CHILDREN <= PROGRAMS


@pytest.mark.parametrize("name", sorted(PROGRAMS - CHILDREN - {"groundspeed.cli"}))
def test_an_interrupt_is_one_line(name):
    assert "interrupts.status_of(" in SOURCES[name], "wrap its main in groundspeed.interrupts.status_of"
