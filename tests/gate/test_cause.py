"""What the gate names as the cause of a change: the choices, kernels, registers and spills that differ."""

from __future__ import annotations

import pytest

from groundspeed.gate.cause import likely_cause
from groundspeed.gate.paired import PairOutcome
from groundspeed.operator import case
from groundspeed.records import KernelResources, Measurement


def side(tuned="", resources=(), kernels=()):
    fields = {"tuned": tuned, "resources": list(resources), "kernels": list(kernels)}
    return Measurement("triton_row", "float32", {"N": 64}, "ok", **fields)


def cause(base, *heads):
    return likely_cause([PairOutcome("pair", case("float32", N=64), base, head) for head in heads])


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        ("A", "A", ""),
        ("", "A", ""),  # unknown is no difference
        ("A", "B", "the autotuner chose B (base: A)"),
        ("k(A); l(C)", "k(A); l(D)", "the autotuner chose l(D) (base: l(C))"),
        ("A; B; C", "A; C; B", "the autotuner chose C; B (base: B; C)"),
        ("A", "A; B", "the autotuner chose A; B (base: A)"),
    ],
)
def test_only_the_choices_that_differ_are_named(base, head, said):
    assert cause(side(base), side(head)) == said


def test_it_is_what_most_processes_say():
    assert cause(side("A"), side("B"), side("A"), side("B")) == "the autotuner chose B (base: A)"
    assert cause(side("A"), side("A"), side("B"), side("A")) == ""


def test_resources_are_those_of_the_launched_kernels():
    base = side(resources=[KernelResources("k", 32, 0, 0), KernelResources("l", 40, 0, 0)])
    head = side(resources=[KernelResources("k", 32, 0, 0), KernelResources("l", 255, 0, 16)])
    assert cause(base, head) == "registers: 255 (base: 40); bytes spilled: 16 (base: 0)"
