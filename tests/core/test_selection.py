"""What a run is narrowed to, and what is said of a name that narrows it to nothing."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.errors import UserError
from groundspeed.operator import DTYPES, TIERS
from groundspeed.selection import TIMERS, VARIABLES, Selection, chosen_energy, chosen_timer
from groundspeed.tree import Tree
from tests.core.scratch import ADD, SPEC, make_tree

word = st.text(string.ascii_letters + string.digits + "_*?[]!=-", min_size=1, max_size=8)
words = st.lists(word, max_size=4).map(tuple)
selections = st.builds(
    Selection,
    operators=words,
    implementations=words,
    dtypes=st.lists(st.sampled_from(DTYPES), max_size=3).map(tuple),
    tier=st.sampled_from(TIERS),
    shapes=st.lists(st.lists(word, min_size=1, max_size=3).map(",".join), max_size=3).map(tuple),
    timer=st.sampled_from(("", *TIMERS)),
    energy=st.booleans(),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    half = SPEC.replace('dtypes=("float32",)', 'dtypes=("float32", "float16")').replace(
        'tolerance={"float32"', 'tolerance={"float16": Tolerance(1e-3, 1e-3), "float32"'
    )
    files = {"softmax": {"spec": half, "triton_row": ADD, "triton_block": ADD}, "relu": {"cuda_vec4.cu": "// x\n"}}
    return Tree(make_tree(tmp_path_factory.mktemp("tree"), {**files, "broken": {"spec": "SPEC = 1\n"}}))


@given(selections)
def test_the_environment_says_what_the_selection_does(selection):
    assert Selection.from_environment(selection.to_environment()) == selection


@given(selections, st.sampled_from([" ", "\t", "  "]))
def test_blanks_and_empty_parts_of_a_list_mean_nothing(selection, blank):
    spaced = {name: value.replace(",", f"{blank},,{blank}") for name, value in selection.to_environment().items()}
    spaced[VARIABLES["shapes"]] = ";".join((blank, *selection.shapes, blank))
    assert Selection.from_environment(spaced) == selection


def test_an_empty_environment_selects_everything_of_the_tier_asked_for(tree):
    assert Selection.from_environment({}) == Selection()
    assert Selection.from_environment({}, tier="small").tier == "small"
    assert Selection.from_environment({VARIABLES["tier"]: "core"}, tier="small").tier == "core"
    assert Selection().chosen_operators(tree) == tree.operators()
    assert all(Selection().includes(one) for one in tree.implementations("softmax"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda tree: Selection(operators=("sofmax",)).check(tree), "unknown operator 'sofmax': there are"),
        (lambda tree: Selection(operators=("sofmax",)).check(tree), "did you mean 'softmax'?"),
        (lambda tree: Selection(implementations=("triton_rwo",)).check(tree), "did you mean 'triton_row'?"),
        (lambda tree: Selection(implementations=("jax_*",)).check(tree), "no implementation matches 'jax_*'"),
        (
            lambda tree: Selection(operators=("relu",), implementations=("triton_*",)).check(tree),
            "no implementation matches 'triton_*'",
        ),
        (lambda tree: Selection(shapes=("N=65",)).check(tree), "no bench shape matches 'N=65'"),
        (lambda tree: Selection(dtypes=("float61",)), "unknown dtype 'float61': expected float64"),
        (lambda tree: Selection(dtypes=("flaot16",)), "did you mean 'float16'?"),
        (lambda tree: Selection(tier="smal"), "unknown tier 'smal': expected small, core, full; did you mean 'small'?"),
        (lambda tree: Selection.from_environment({VARIABLES["tier"]: "huge"}), "unknown tier 'huge'"),
    ],
)
def test_a_name_that_matches_nothing_is_one_line(tree, make, said):
    with pytest.raises(UserError) as caught:
        make(tree)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_hint_is_given_only_for_something_near(tree):
    with pytest.raises(UserError) as caught:
        Selection(operators=("qqq",)).check(tree)
    assert "did you mean" not in str(caught.value)


def test_patterns_choose_implementations_and_shapes(tree):
    selection = Selection(("softmax",), ("triton_*", "torch_eager"), ("float16",), "full", ("N=4*",))
    selection.check(tree)
    assert selection.chosen_operators(tree) == ("softmax",)
    names = [one.name for one in tree.implementations("softmax") if selection.includes(one)]
    assert names == ["torch_eager", "triton_block", "triton_row"]
    assert [case.label for case in selection.cases(tree.spec("softmax"))] == ["float16 N=4096"]


def test_what_is_left_out_has_a_reason(tree):
    spec = tree.spec("softmax")
    reasons = [Selection(dtypes=("float32",), shapes=("N=64",)).excludes(case) for case in spec.bench_cases]
    assert reasons == [None, "dtype float16 not selected", "shape not selected", "dtype float16 not selected"]
    assert [case.label for case in Selection(tier="small").cases(spec)] == ["float32 N=64"]


def test_a_broken_spec_is_not_the_selections_business(tree):
    Selection(shapes=("N=64",)).check(tree)
    Selection(operators=("broken",)).check(tree)


def test_the_timer_and_energy_of_the_environment():
    assert chosen_timer({}) == "" and chosen_timer({VARIABLES["timer"]: "graph"}) == "graph"
    with pytest.raises(UserError, match="unknown timer 'event': expected cupti, events, graph; did you mean 'events'"):
        chosen_timer({VARIABLES["timer"]: "event"})
    assert [chosen_energy({VARIABLES["energy"]: value}) for value in ("", "0", "1")] == [False, False, True]
    with pytest.raises(UserError, match="GROUNDSPEED_ENERGY is 'yes', expected 1"):
        chosen_energy({VARIABLES["energy"]: "yes"})
