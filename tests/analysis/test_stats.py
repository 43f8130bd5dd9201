"""Properties of the statistics, and their values where theory or another program gives them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.analysis.stats import geometric_mean, hodges_lehmann, median, median_interval, quantile

values = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40)
positive = st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=40)
LOCATIONS = (median, hodges_lehmann, lambda x: quantile(x, 0.5))


@given(values, st.integers(-1000, 1000))
def test_locations_are_translation_equivariant(x, shift):
    scale = max(1.0, max(map(abs, x)))
    for location in LOCATIONS:
        moved = location([value + shift for value in x])
        assert math.isclose(moved, location(x) + shift, abs_tol=1e-9 * (scale + abs(shift)))


@given(values)
def test_locations_lie_within_the_values_and_ignore_order(x):
    for location in LOCATIONS:
        assert min(x) <= location(x) <= max(x)
        assert location(x) == location(sorted(x, reverse=True))


@given(values)
def test_hodges_lehmann_is_odd(x):
    scale = max(1.0, max(map(abs, x)))
    assert math.isclose(hodges_lehmann([-value for value in x]), -hodges_lehmann(x), abs_tol=1e-9 * scale)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12))
def test_hodges_lehmann_is_the_median_of_walsh_averages(x):
    walsh = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(x, 2))
    middle = len(walsh) // 2
    expected = walsh[middle] if len(walsh) % 2 else (walsh[middle - 1] + walsh[middle]) / 2
    assert hodges_lehmann(x) == pytest.approx(expected, abs=1e-9)


def test_hodges_lehmann_shrugs_off_two_outliers_of_ten():
    assert abs(hodges_lehmann([0.001, -0.001, 0.002, 0.0, -0.002, 0.001, 0.0, -0.001, 50.0, 80.0])) < 0.01


@given(positive, st.sampled_from([0.5, 0.9, 0.99]))
def test_median_interval_contains_the_median_and_is_made_of_samples(x, confidence):
    low, high = median_interval(x, confidence)
    assert low <= median(x) <= high
    assert (low in x and high in x) or (low, high) == (-math.inf, math.inf)


@given(st.lists(st.floats(0, 1e6), min_size=10, max_size=40))
def test_more_confidence_never_narrows_the_interval(x):
    low, high = median_interval(x, 0.9)
    wider_low, wider_high = median_interval(x, 0.99)
    assert wider_low <= low and high <= wider_high


@pytest.mark.parametrize(
    ("n", "rank"),
    # Tabulated ranks of the 99 % interval of a median (Conover, Practical Nonparametric Statistics): l = rank + 1.
    [(7, None), (8, 0), (10, 0), (11, 0), (12, 1), (20, 3), (30, 7), (50, 15), (100, 36)],
)
def test_median_interval_uses_the_tabulated_ranks(n, rank):
    expected = (-math.inf, math.inf) if rank is None else (float(rank), float(n - 1 - rank))
    assert median_interval(list(range(n))) == expected


@settings(deadline=None)
@given(st.integers(1000, 20000))
def test_median_interval_of_many_samples_follows_the_normal_limit(n):
    low, high = median_interval(np.arange(n, dtype=float))
    assert abs((high - low) / (2 * 2.5758 * math.sqrt(n) / 2) - 1) < 0.05


def test_median_interval_covers_at_its_rate():
    random = np.random.default_rng(20240501)
    draws = random.lognormal(size=(4000, 30))
    covered = sum(low <= 1.0 <= high for low, high in map(median_interval, draws))
    assert covered / 4000 >= 0.99 - 3 * math.sqrt(0.99 * 0.01 / 4000)


@given(positive)
def test_geometric_mean_lies_between_and_inverts(x):
    mean = geometric_mean(x)
    assert min(x) * (1 - 1e-9) <= mean <= max(x) * (1 + 1e-9)
    assert geometric_mean([1 / value for value in x]) == pytest.approx(1 / mean)


@given(values, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise(x, p, q):
    low, high = sorted((p, q))
    assert quantile(x, low) <= quantile(x, high)
    assert quantile(x, 0) == min(x) and quantile(x, 1) == max(x)


@pytest.mark.parametrize("function", [median, hodges_lehmann, geometric_mean, median_interval])
@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [[1.0], [2.0]]])
def test_nothing_is_made_of_nothing(function, bad):
    with pytest.raises(ValueError):
        function(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda: geometric_mean([1.0, 0.0]),
        lambda: quantile([1.0], 1.5),
        lambda: median_interval([1.0], 1.0),
    ],
)
def test_arguments_outside_their_domain_raise(call):
    with pytest.raises(ValueError):
        call()
