"""Changes of level: what is found, where, how surely; against known histories and the other detectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.analysis.history import PROVISIONAL, Change, Memory, find_changes
from groundspeed.analysis.history.detectors import asv, ours
from groundspeed.analysis.history.drift import without_spikes
from groundspeed.analysis.history.generator import KINDS, STEP, make
from groundspeed.analysis.history.score import Score, named_within, score
from groundspeed.analysis.history.trial import REPORTING, TUNING, named_soon, scored

SEEDS = REPORTING[:40]


def levels(*parts: tuple[float, int], noise: float = 0.004, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = np.concatenate([np.full(count, level) for level, count in parts])
    return values * (1 + random.normal(0, noise, len(values)))


@pytest.mark.parametrize("seed", range(20))
def test_a_step_of_five_per_cent_is_found_where_it_is(seed: int):
    (change,) = find_changes(levels((10, 30), (10.5, 30), seed=seed))
    assert change.kind == "step" and change.at == 30 and not change.provisional
    assert change.after_index < change.at <= change.by_index
    assert change.ratio == pytest.approx(1.05, abs=0.004)


@pytest.mark.parametrize("seed", range(20))
def test_two_steps(seed: int):
    assert [one.at for one in find_changes(levels((10, 20), (11, 20), (9.5, 20), seed=seed))] == [20, 40]


def test_noise_alone_has_none():
    assert not [seed for seed in range(200) if find_changes(levels((10, 60), seed=seed))]


def test_short_and_constant_series():
    assert find_changes(levels((10, 2), (20, 3))) == ()
    assert find_changes(np.ones(50)) == ()
    assert find_changes([]) == ()
    assert [one.at for one in find_changes(levels((10, 3), (20, 3)))] == [3]


def test_counts_of_bytes_that_never_scatter():
    (change,) = find_changes([1024.0] * 40 + [2048.0] * 10)
    assert (change.at, change.after_index, change.by_index, change.ratio) == (40, 39, 40, 2.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_values_that_no_measurement_has(bad: float):
    with pytest.raises(ValueError, match="positive, finite"):
        find_changes([1.0] * 10 + [bad])


def test_a_young_change_is_provisional_until_five_commits_lie_behind_it():
    values = levels((10, 60), (11, 20))
    states = {n: [one.provisional for one in find_changes(values[: 60 + n])] for n in (3, 4, 5, 6, 12)}
    assert states[3] in ([], [True]) and states[4] == [True]
    assert states[PROVISIONAL] == states[6] == states[12] == [False]


def test_a_spike_is_no_change():
    values = levels((10, 100))
    values[50] *= 3
    values[77:79] *= 1.4
    assert find_changes(values) == ()


def test_a_difference_too_small_to_matter_is_left_out():
    values = levels((10, 50), (10.1, 50), noise=0.0005)
    assert find_changes(values) == ()
    assert [one.at for one in find_changes(values, smallest=0.005)] == [50]


def test_ten_times_one_per_cent_is_one_drift_that_asv_misses():
    found = {"ours": 0, "asv": 0}
    for seed in SEEDS:
        made = make("drift", seed)
        found["ours"] += len(find_changes(made.values)) == 1
        found["asv"] += score(made, asv(made.values)).matched
    assert found["ours"] >= 0.85 * len(SEEDS), found
    assert found["ours"] > found["asv"]


def test_a_drift_names_its_levels_and_where_it_lies():
    made = make("drift", 1)
    (change,) = find_changes(made.values)
    (truth,) = made.truth
    assert change.kind == "drift"
    assert change.after_index <= truth.last and change.by_index >= truth.first
    assert change.ratio == pytest.approx(1.01**10, rel=0.02)


def test_a_slope_over_the_whole_series_is_a_drift():
    (change,) = find_changes(np.exp(np.linspace(0, 0.04, 120)) * levels((10, 120), noise=0.008))
    assert change.kind == "drift" and change.ratio == pytest.approx(1.04, rel=0.02)


def test_the_figures_of_the_documentation():
    scores = {kind: scored(kind, ours, SEEDS) for kind in KINDS}
    total = sum(scores.values(), Score())
    named, steps = (sum(pair) for pair in zip(*(named_soon(kind, ours, SEEDS) for kind in KINDS), strict=True))
    assert total.f1 >= 0.97
    assert total.false / total.series <= 0.1
    assert named / steps >= 0.9, (named, steps)


def test_the_reporting_seeds_were_not_tuned_on():
    assert not set(TUNING) & set(REPORTING)


@pytest.mark.parametrize("kind", KINDS)
def test_a_grown_series_gives_what_the_whole_gives(kind: str):
    """Growing commit by commit never loses a settled change nor leaves one that the whole would not have."""
    for seed in SEEDS[:3]:
        made, memory = make(kind, seed, 120), Memory()
        for n in range(20, 121):
            grown = memory.changes(("series",), made.values[:n])
        whole = find_changes(made.values)
        assert score(made, _stretches(grown)).missed <= score(made, _stretches(whole)).missed
        assert abs(len(grown) - len(whole)) <= 1


def _stretches(changes: tuple[Change, ...]) -> list[tuple[int, int]]:
    return [(one.at, max(one.at, one.by_index)) for one in changes]


def test_a_window_that_slides_keeps_what_it_knows():
    values, memory = levels((10, 100), (12, 150)), Memory()
    before = memory.changes("s", values[:200])
    after = memory.changes("s", values[3:203])
    assert [one.at for one in before] == [100]
    assert [(one.at, one.after_index, one.by_index) for one in after] == [(97, 96, 97)]


def test_another_past_is_looked_at_anew():
    memory = Memory()
    assert [one.at for one in memory.changes("s", levels((10, 50), (12, 50)))] == [50]
    assert [one.at for one in memory.changes("s", levels((10, 30), (12, 70)))] == [30]


def test_the_memory_is_bounded():
    memory = Memory(limit=2)
    for name in "abc":
        memory.changes(name, levels((10, 50)))
    assert len(memory._seen) == 2


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(1e-9, 1e9), min_size=0, max_size=60),
    scale=st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]),
)
def test_any_series_is_answered_in_order_whatever_its_unit(values: list[float], scale: float):
    found = find_changes(values)
    assert [one.at for one in found] == sorted({one.at for one in found})
    for one in found:
        assert 0 <= one.after_index <= one.at <= one.by_index < len(values) or one.by_index == len(values)
        assert max(one.ratio, 1 / one.ratio) >= 1.019
    assert len(find_changes([value * scale for value in values])) == len(found)


def test_spikes_are_replaced_by_their_neighbours():
    logs = np.random.default_rng(0).normal(0, 0.01, 50)
    spiked = logs.copy()
    spiked[20] += 1
    assert np.abs(without_spikes(spiked)[20]) < 0.05
    assert (without_spikes(np.zeros(5)) == 0).all()


def test_named_within_counts_steps_and_not_drifts():
    steps = next(made for made in (make("steps", seed) for seed in range(50)) if len(made.truth) == 2)
    assert named_within(steps, lambda values: [(len(values) - 5, len(values) - 5)], 5) == (2, 2)
    assert named_within(steps, lambda values: [], 5) == (0, 2)
    assert named_within(make("drift", 0), ours, 5) == (0, 0)


def test_the_generator_gives_what_it_says():
    made = make("steps", 5)
    assert make("steps", 5).values.tolist() == made.values.tolist()
    assert all(abs(a.first - b.first) >= 15 for a in made.truth for b in made.truth if a is not b)
    for truth in made.truth:
        ratio = np.median(made.values[truth.first : truth.first + 12]) / np.median(
            made.values[truth.first - 12 : truth.first]
        )
        assert min(abs(ratio - (1 + STEP)), abs(ratio - 1 / (1 + STEP))) < 0.02
    with pytest.raises(ValueError, match="unknown kind"):
        make("walk", 0)
