"""The shown evidence against values computed by hand and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.significance import (
    benjamini_hochberg,
    bootstrap_interval,
    rank_sum_p,
    signed_rank_p,
    signed_rank_p_rows,
)


def test_five_processes_of_one_sign_give_one_sixteenth():
    assert signed_rank_p([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 32)
    assert signed_rank_p([0.1] * 10) == pytest.approx(2 / 1024)
    assert signed_rank_p([0.0, 0.0]) == 1.0


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_signed_rank_counts_every_sign(x):
    kept = [value for value in x if value]
    sizes = sorted(map(abs, kept))
    ranks = [np.mean([i + 1 for i, size in enumerate(sizes) if size == abs(value)]) for value in kept]
    observed = min(
        sum(rank for rank, value in zip(ranks, kept, strict=True) if value > 0),
        sum(rank for rank, value in zip(ranks, kept, strict=True) if value < 0),
    )
    totals = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([0, 1], repeat=len(kept))
    ]
    expected = min(1.0, 2 * sum(total <= observed + 1e-9 for total in totals) / len(totals)) if kept else 1.0
    assert signed_rank_p(x) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 6, 10, 41])
def test_rows_are_what_their_values_are_alone(n):
    x = np.random.default_rng(5).integers(-4, 6, (3, 20, n)).astype(float)
    x[0, 0] = 0.0
    rows = signed_rank_p_rows(x)
    assert rows.shape == (3, 20) and rows[0, 0] == 1.0
    assert rows.ravel().tolist() == [signed_rank_p(row) for row in x.reshape(-1, n)]


def test_signed_rank_limit_joins_the_exact_values():
    random = np.random.default_rng(1)
    x = random.normal(0.3, 1, 40)
    exact = signed_rank_p(x)
    assert signed_rank_p(np.append(x, 1e-9)) == pytest.approx(exact, abs=0.02)


def test_rank_sum_of_separate_and_of_equal_samples():
    assert rank_sum_p(range(20), range(100, 120)) < 1e-6
    assert rank_sum_p([1.0] * 9, [1.0] * 9) == 1.0


@pytest.mark.parametrize("shift", [0.0, 2.5, 4.5])
def test_rank_sum_is_near_the_exact_permutation_test(shift):
    x, y = np.arange(7.0), np.arange(7.0) + shift
    pooled = np.concatenate([x, y])

    def distance(chosen):
        first, second = pooled[list(chosen)], np.delete(pooled, list(chosen))
        return abs((first[:, None] > second).sum() + 0.5 * (first[:, None] == second).sum() - 24.5)

    observed = distance(range(7))
    exact = np.mean([distance(chosen) >= observed for chosen in itertools.combinations(range(14), 7)])
    assert rank_sum_p(x, y) == pytest.approx(exact, abs=0.02)


def test_rank_sum_keeps_its_rate_when_nothing_differs():
    random = np.random.default_rng(4)
    called = sum(rank_sum_p(random.normal(size=15), random.normal(size=12)) < 0.05 for _ in range(2000))
    assert abs(called / 2000 - 0.05) < 0.02


def test_q_values_of_the_1995_paper_style_example():
    p = [0.01, 0.04, 0.03, 0.005]
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_values_keep_the_order_and_are_never_below_p(p):
    q = benjamini_hochberg(p)
    assert ((q >= np.asarray(p) - 1e-12) & (q <= 1)).all()
    assert (np.diff(q[np.argsort(p, kind="stable")]) >= -1e-12).all()


def test_bootstrap_interval_is_seeded_and_holds_the_estimate():
    x = np.random.default_rng(2).normal(0.02, 0.01, 10)
    low, high = bootstrap_interval(x)
    assert (low, high) == bootstrap_interval(x)
    assert low < 0.02 < high and high - low < 0.04
    assert bootstrap_interval([0.5] * 5) == (0.5, 0.5)
    assert math.isfinite(low)
