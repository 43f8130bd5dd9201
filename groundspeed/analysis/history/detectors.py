"""Our detection and others', in one form, for the trial. The others are imported when they are asked for."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np

from groundspeed.analysis.history.changes import SMALLEST, find_changes
from groundspeed.analysis.history.levels import Values
from groundspeed.analysis.history.score import Detector


def available() -> dict[str, Detector]:
    """What is installed, by the name under which it is reported."""
    detectors: dict[str, Detector] = {"groundspeed": ours}
    if importlib.util.find_spec("asv"):
        detectors["asv"] = asv
    if importlib.util.find_spec("otava"):
        detectors["Otava"] = otava
    return detectors


def ours(values: Values) -> list[tuple[int, int]]:
    """Steps where they are; of a drift, all of it."""
    return [(one.at, one.by_index if one.kind == "drift" else one.at) for one in find_changes(values)]


def asv(values: Values) -> list[tuple[int, int]]:
    """asv's own step detection, as its pages use it; steps under 2 % are dropped here as ours are."""
    from asv.step_detect import detect_steps

    steps = [step for step in detect_steps(list(values)) if step[0] is not None]
    return [(after[0], after[0]) for before, after in itertools.pairwise(steps) if _differ(before[2], after[2])]


def otava(values: Values) -> list[tuple[int, int]]:
    """Apache Otava's detection with its default window and p-value; steps under 2 % are dropped here as ours are."""
    from otava.analysis import compute_change_points

    points, _ = compute_change_points(np.asarray(values).tolist(), min_magnitude=SMALLEST)
    return [(point.index, point.index) for point in points]


def _differ(before: float, after: float) -> bool:
    return max(before / after, after / before) - 1 >= SMALLEST
