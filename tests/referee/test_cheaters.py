"""Each cheater is caught for what it does, and passes before a referee that lacks the one thing that sees it."""

from __future__ import annotations

import pytest

from groundspeed.measure.referee import REFEREE, fences
from groundspeed.operator import case
from tests.referee.cheaters import CHEATERS, GPU_CHEATERS, IN_ORDER, Cheater, N
from tests.referee.court import FAULTY, GALLERY, judged, verdict, without

ALL = pytest.mark.parametrize("cheater", CHEATERS, ids=str)


@ALL
def test_is_caught_for_what_it_does(cheater: Cheater):
    complaint = verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, cheater.rules or REFEREE)
    assert cheater.accepts(complaint), complaint


@ALL
def test_passes_when_the_one_check_is_missing(cheater: Cheater):
    assert verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, cheater.blind) == ""


def test_few_checks_are_switched_off_for_any_of_them():
    off = [len(REFEREE.checks) - len(each.blind.checks) for each in (*CHEATERS, *GPU_CHEATERS)]
    assert max(off) <= 4 and off.count(0) + off.count(1) > len(off) / 2  # docs/measuring.md says so


def test_who_copies_from_another_implementation_comes_before_it_once():
    names = ("torch_writer", "torch_parasite")
    found = judged(GALLERY, "double", names, N)
    assert list(found.faults) == ["torch_parasite"]
    assert "inputs overwritten in place: tolerance" in found.faults["torch_parasite"].reason
    assert not judged(GALLERY, "double", names, N, IN_ORDER).faults


def test_an_output_on_another_device_is_named():
    """On a CPU the other device is the one without memory, so without the check nothing could be judged at all."""
    assert verdict(GALLERY, "double", "torch_elsewhere", N).startswith("device: ")
    assert not verdict(GALLERY, "double", "torch_elsewhere", N, without("device")).startswith("device: ")


READERS = (
    (GALLERY, "double", "torch_reads_behind", N, 1),
    (FAULTY, "normalize_color", "torch_four_loads", case("float32", N=1, H=5, W=7), 3),
)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[2])
def test_who_reads_past_an_input_finds_nan_there(reader, monkeypatch):
    tree, operator, name, one, spoiled = reader
    many = "element is" if spoiled == 1 else "elements are"
    assert verdict(tree, operator, name, one).startswith(f"finite: {spoiled} {many} NaN or infinite")
    monkeypatch.setattr(fences, "_BYTE", 0)
    assert verdict(tree, operator, name, one) == ""
