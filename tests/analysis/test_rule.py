"""The gate's rule on processes whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.analysis.rule import (
    DISAGREE_P,
    LEAST_FRESH,
    ProcessMedians,
    Verdict,
    agree,
    conviction,
    gateable,
    judge,
    needs_fresh,
    noise_floor,
    suspicion,
)

T = 0.03


def processes(ratios, base=100.0):
    ratios = np.asarray(ratios, dtype=float)
    return ProcessMedians(np.full(ratios.shape, base), base * ratios)


def shifted(ratio, count):
    return processes([ratio] * count)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.0, Verdict.UNCHANGED),
        (1 + 0.49 * T, Verdict.UNCHANGED),
        (1 + 0.6 * T, Verdict.AMBIGUOUS),
        (1 + 0.71 * T, Verdict.REGRESSED),
        (1 / (1 + 0.71 * T), Verdict.IMPROVED),
        (1 / (1 + 0.6 * T), Verdict.AMBIGUOUS),
        (2.0, Verdict.REGRESSED),
        (0.5, Verdict.IMPROVED),
    ],
)
def test_a_steady_ratio_meets_its_limit(ratio, verdict):
    first = shifted(ratio, 5)
    fresh = shifted(ratio, 10) if needs_fresh(first, T) else None
    judgement = judge(first, fresh, T)
    assert judgement.verdict == verdict
    assert judgement.ratio == pytest.approx(ratio)
    assert judgement.low == pytest.approx(ratio) and judgement.high == pytest.approx(ratio)
    assert judgement.processes == (10 if fresh else 5)


@settings(deadline=None)
@given(st.lists(st.floats(0.9, 1.1), min_size=10, max_size=10), st.floats(0.01, 0.05))
def test_improvement_is_regression_with_the_sides_exchanged(ratios, threshold):
    medians = processes(ratios)
    swapped = ProcessMedians(medians.head, medians.base)
    assert suspicion(medians, threshold) == -suspicion(swapped, threshold)
    assert conviction(medians, threshold) == -conviction(swapped, threshold)


@given(st.lists(st.floats(0.9, 1.1), min_size=5, max_size=5), st.floats(1.0, 1e9))
def test_the_unit_of_time_does_not_matter(ratios, scale):
    assert processes(ratios, base=scale).shift == pytest.approx(processes(ratios).shift, abs=1e-9)


def test_the_veto_saves_a_series_whose_best_processes_agree():
    fresh = processes([1.05] * 8 + [1.0, 1.001])
    assert conviction(fresh, T) == 0
    judgement = judge(shifted(1.05, 5), fresh, T)
    assert judgement.verdict == Verdict.AMBIGUOUS and "bimodal" in judgement.reason


def test_processes_that_disagree_convict_nobody():
    # Six of ten a fifth to two fifths slower, the fastest ones 5 % apart, and yet four of ten much faster.
    fresh = ProcessMedians(
        np.array([100.0, 200, 200, 200, 200, 200, 200, 200, 200, 200]),
        np.array([105.0, 250, 260, 270, 280, 290, 150, 155, 160, 165]),
    )
    assert fresh.shift > math.log1p(0.7 * T) and fresh.fastest_shift > math.log1p(0.3 * T)
    for each, first in ((fresh, 2.0), (ProcessMedians(fresh.head, fresh.base), 0.5)):
        judgement = judge(shifted(first, 5), each, T)
        assert judgement.p > DISAGREE_P and judgement.low < 1 < judgement.high
        assert judgement.verdict == Verdict.AMBIGUOUS and judgement.scattered and conviction(each, T) == 0
        assert f"disagree: {judgement.low - 1:+.1%} to {judgement.high - 1:+.1%}, signed-rank p" in judgement.reason


@pytest.mark.parametrize(
    ("against", "verdict"), [(1, Verdict.REGRESSED), (3, Verdict.REGRESSED), (4, Verdict.AMBIGUOUS)]
)
def test_how_many_processes_may_point_the_other_way(against, verdict):
    # The smallest ratios point the other way: their ranks are 1, 2, ..., whose sum is 6 or 10, and 8 is p = 0.049.
    ratios = [1.0 - 0.001 * (i + 1) for i in range(against)] + [1.08 + 0.001 * i for i in range(10 - against)]
    base = np.full(10, 100.0)
    base[-1] = 90.0  # head is slower where base is at its best: the other veto is silent
    fresh = ProcessMedians(base, base * ratios)
    assert fresh.shift > math.log1p(0.7 * T) and fresh.fastest_shift > math.log1p(0.3 * T)
    judgement = judge(shifted(1.05, 5), fresh, T)
    assert judgement.verdict == verdict
    assert judgement.scattered == (verdict == Verdict.AMBIGUOUS)


def test_as_few_fresh_processes_as_the_policy_allows_can_convict():
    assert agree(shifted(1.05, LEAST_FRESH)) and not agree(shifted(1.05, LEAST_FRESH - 1))


def test_the_verdict_rests_on_the_fresh_processes_alone():
    judgement = judge(shifted(1.5, 5), shifted(1.0, 10), T)
    assert judgement.verdict == Verdict.UNCHANGED and judgement.ratio == pytest.approx(1.0)
    assert "not confirmed" in judgement.reason


def test_a_noisy_series_is_named_and_never_convicted():
    floor = math.log1p(0.71 * T)
    assert not gateable(floor, T) and gateable(math.log1p(0.7 * T), T) and gateable(None, T)
    first = shifted(2.0, 5)
    assert not needs_fresh(first, T, floor)
    judgement = judge(first, None, T, floor)
    assert judgement.verdict == Verdict.AMBIGUOUS and "not gateable" in judgement.reason
    assert judge(shifted(1.0, 5), None, T, floor).verdict == Verdict.UNCHANGED


def test_a_suspect_without_fresh_processes_is_refused():
    with pytest.raises(ValueError, match="fresh"):
        judge(shifted(1.5, 5), None, T)


@pytest.mark.parametrize(("base", "head"), [([1.0], [1.0, 2.0]), ([], []), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_medians_that_cannot_be_paired_are_refused(base, head):
    with pytest.raises(ValueError):
        ProcessMedians(np.array(base), np.array(head))


def test_noise_floor_of_processes_that_agree():
    assert noise_floor(np.zeros(10)) == 0.0
    assert noise_floor(np.full(10, 0.01)) == pytest.approx(0.01)
    with pytest.raises(ValueError, match="at least 10"):
        noise_floor(np.zeros(9))


def test_noise_floor_is_repeatable_and_follows_the_normal_law():
    log_ratios = np.random.default_rng(3).normal(0, 0.01, 400)
    floor = noise_floor(log_ratios)
    assert floor == noise_floor(log_ratios) == noise_floor(-log_ratios)
    # sd of the estimate of five Gaussian values is about 0.01 / sqrt(5 * 0.955); 3.09 of them hold 99.8 % on two sides.
    assert floor == pytest.approx(3.09 * 0.01 / math.sqrt(5 * 0.955), rel=0.1)


def test_noise_floor_sees_a_mode_that_a_tenth_of_the_processes_take():
    assert noise_floor(np.array([0.0] * 9 + [0.12])) > 0.03
    assert noise_floor(np.array([0.0] * 99 + [0.12])) < 0.07
