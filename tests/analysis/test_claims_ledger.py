"""The claims ledger: reading it, what it refuses, and whether ours is about something that there is."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from groundspeed.analysis.claims import LedgerError, read_claims
from groundspeed.analysis.claims.ledger import patterns_of
from groundspeed.tree import Tree

LEDGER = Path(__file__).parents[2] / "impls" / "claims.toml"

FAULTY = {
    "[[claim]]\nsource = 1": "source",
    "[[claim": "claims.toml cannot be used",
    '[[claim]]\nsource = "a"\nspeedup = 2': "speedup",
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [2, 1]\nreason = "c"': "lowest, highest",
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]\nreason = "c"\nquantity = "beauty"': "unknown quantity",
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]': "or the reason",
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]\noperator = "x"': "or the reason",
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]\noperator = "x"\nimplementation = "y"\nkernels = "z"': (
        "kernels belongs to"
    ),
    '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]\noperator = "x"\nimplementation = "y"\nkernels = "("\n'
    'quantity = "kernel share"': "regular expression",
    **{
        '[[claim]]\nsource = "a"\nclaim = "b"\npublished = [1, 2]\noperator = "x"\nimplementation = "y"\n' + more: fault
        for more, fault in (
            ('backward = "z"', "backward belongs to"),
            ('quantity = "training speedup"\nbaseline_dtype = "float32"', "on the same case"),
            ('quantity = "training speedup"\nbackward = "z,z"', "for each forward one"),
            ('quantity = "training memory"\nbaseline_backward = "z,z"', "for each forward one"),
        )
    },
}


@pytest.mark.parametrize("text", FAULTY)
def test_a_faulty_ledger_is_one_clear_line(tmp_path, text):
    ledger = tmp_path / "claims.toml"
    ledger.write_text(text, encoding="utf-8")
    with pytest.raises(LedgerError, match=r"claims\.toml cannot be used") as caught:
        read_claims(ledger)
    assert "\n" not in str(caught.value) and FAULTY[text] in str(caught.value)


def test_a_ledger_that_is_not_there(tmp_path):
    with pytest.raises(LedgerError, match="No such file"):
        read_claims(tmp_path / "none.toml")


CLAIMS = read_claims(LEDGER)
OURS = [one for one in CLAIMS if one.operator and "*" not in one.operator]
TREE = Tree(LEDGER.parent)


def test_at_most_a_fifth_can_have_no_answer():
    assert len(CLAIMS) >= 80
    assert sum(bool(one.reason) for one in CLAIMS) <= len(CLAIMS) / 5


@pytest.mark.parametrize("one", OURS, ids=lambda one: f"{one.subject} {one.quantity}")
def test_every_claim_of_the_ledger_is_about_something_there_is(one):
    for place, operator in enumerate(one.operators):
        assert operator in TREE.operators()
        names = {implementation.name for implementation in TREE.implementations(operator)}
        if one.is_training:
            wanted = [[family[place]] for family in (*one.families, *one.over_families)]
        else:
            wanted = [patterns_of(patterns) for patterns in (one.implementation, one.over)]
        for patterns in wanted:
            assert any(fnmatchcase(name, pattern) for name in names for pattern in patterns), patterns
    in_tier = [set(TREE.spec(operator).tier_cases(one.tier)) for operator in one.operators]
    cases = [case for case in set.intersection(*in_tier) if fnmatchcase(case.shape_label, one.cases or "*")]
    assert [case for case in cases if one.dtype in ("", case.dtype)], "no case of this tier"
    over = [case for case in in_tier[0] if fnmatchcase(case.shape_label, one.baseline_cases or "*")]
    assert [case for case in over if (one.baseline_dtype or one.dtype) in ("", case.dtype)]


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.claim)
def test_every_claim_says_who_says_it(one):
    assert one.source.startswith(("000, ", "001, ", "002, ", "003, ", "004, ")) or one.url.startswith("https://")
