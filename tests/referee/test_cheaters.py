"""Each cheater is caught for what it does, and passes before a referee that lacks the one thing that sees it."""

from __future__ import annotations

import pytest

from groundspeed.measure.referee import REFEREE
from tests.referee.cheaters import CHEATERS, IN_ORDER, Cheater, N
from tests.referee.court import GALLERY, judged, verdict

ALL = pytest.mark.parametrize("cheater", CHEATERS, ids=str)


@ALL
def test_is_caught_for_what_it_does(cheater: Cheater):
    complaint = verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, cheater.rules or REFEREE)
    allowed = (cheater.complaints,) if isinstance(cheater.complaints, str) else cheater.complaints
    check = complaint.removeprefix("right before, wrong with ")
    check = check.split(": ", 1)[1] if check != complaint else check
    assert check.split(":")[0] in allowed, complaint


@ALL
def test_passes_when_the_one_check_is_missing(cheater: Cheater):
    assert verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, cheater.blind) == ""


def test_who_copies_from_another_implementation_comes_before_it_once():
    names = ("torch_writer", "torch_parasite")
    found = judged(GALLERY, "double", names, N)
    assert list(found.faults) == ["torch_parasite"]
    assert "inputs overwritten in place: tolerance" in found.faults["torch_parasite"].reason
    assert not judged(GALLERY, "double", names, N, IN_ORDER).faults
