from __future__ import annotations

import numpy as np
import pytest

from dashboard.changepoints import change_points


def levels(*parts: tuple[float, int], noise: float = 0.004, seed: int = 1) -> bytes:
    random = np.random.default_rng(seed)
    values = np.concatenate([np.full(count, level) for level, count in parts])
    return np.log(values * (1 + random.normal(0, noise, len(values)))).tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_a_step_of_five_per_cent_is_found_where_it_is(seed: int) -> None:
    assert change_points(levels((10, 30), (10.5, 30), seed=seed)) == (30,)


@pytest.mark.parametrize("seed", range(20))
def test_two_steps(seed: int) -> None:
    assert change_points(levels((10, 20), (11, 20), (9.5, 20), seed=seed)) == (20, 40)


def test_noise_alone_has_none_but_rarely() -> None:
    found = sum(bool(change_points(levels((10, 60), seed=seed))) for seed in range(100))
    assert found <= 5


def test_short_and_constant_series() -> None:
    assert change_points(levels((10, 2), (20, 3))) == ()
    assert change_points(np.zeros(50).tobytes()) == ()
    assert change_points(levels((10, 3), (20, 3))) == (3,)
