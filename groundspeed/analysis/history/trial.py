"""The detection on trial: made-up histories of the reporting seeds, and how long it takes.

python -m groundspeed.analysis.history.trial [--series 200] [--data FOLDER]

Prints Markdown. Parameters were chosen on ``TUNING`` seeds and are reported on ``REPORTING`` ones. ``--data`` is a
folder of JSON files, each a list of numbers or an object with one under ``series``, to show side by side on real
histories what each detector finds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from groundspeed import interrupts
from groundspeed.analysis.history import find_changes
from groundspeed.analysis.history.detectors import available
from groundspeed.analysis.history.generator import KINDS, make
from groundspeed.analysis.history.score import Detector, Score, named_within, score

TUNING = range(1_000)
REPORTING = range(1_000, 1_000_000)
SOON = 5  # commits
LISTED = 12  # changes of one series; of more, their number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=200, help="made-up histories of each kind (default: 200)")
    parser.add_argument("--data", type=Path, help="a folder of JSON files with real series")
    arguments = parser.parse_args()
    seeds = REPORTING[: arguments.series]
    print("| detector | F1 | " + " | ".join(f"F1 {kind}" for kind in KINDS if kind != "steady"), end="")
    print(f" | false a series | named within {SOON} | ms a series |")
    print("|---" * (5 + len(KINDS)) + "|")
    for name, detect in available().items():
        print(row(name, detect, seeds), flush=True)
    print("\n" + "\n".join(speed()))
    if arguments.data:
        print("\n" + "\n".join(real(arguments.data)))
    return 0


def row(name: str, detect: Detector, seeds: range) -> str:
    """One detector over all kinds: F1, false changes in a series of 200 commits, steps named soon, time."""
    began = time.perf_counter()
    scores = {kind: scored(kind, detect, seeds) for kind in KINDS}
    milliseconds = (time.perf_counter() - began) / (len(KINDS) * len(seeds)) * 1e3
    total = sum(scores.values(), Score())
    kinds = " | ".join(f"{scores[kind].f1:.3f}" for kind in KINDS if kind != "steady")
    named, steps = (sum(pair) for pair in zip(*(named_soon(kind, detect, seeds) for kind in KINDS), strict=True))
    soon = f"{100 * named / max(steps, 1):.0f} %"
    return f"| {name} | {total.f1:.3f} | {kinds} | {total.false / total.series:.3f} | {soon} | {milliseconds:.1f} |"


def scored(kind: str, detect: Detector, seeds: range) -> Score:
    """Over the histories of one kind."""
    made = [make(kind, seed) for seed in seeds]
    return sum((score(one, detect(one.values)) for one in made), Score())


def named_soon(kind: str, detect: Detector, seeds: range) -> tuple[int, int]:
    """Steps found with ``SOON`` commits on the new level, and steps, over the histories of one kind."""
    pairs = [named_within(make(kind, seed), detect, SOON) for seed in seeds]
    return sum(named for named, _ in pairs), sum(steps for _, steps in pairs)


def speed(series: int = 60, commits: int = 500) -> list[str]:
    """Seconds for 6,000 series from cold and when one commit arrives, from what ``series`` of them take."""
    made = [make(KINDS[number % len(KINDS)], number, commits).values for number in range(series)]
    find_changes(made[0])  # what the import takes is paid once
    known = [find_changes(values[:-1]) for values in made]
    began = time.perf_counter()
    for values in made:
        find_changes(values)
    cold = time.perf_counter() - began
    began = time.perf_counter()
    for values, before in zip(made, known, strict=True):
        find_changes(values, known=before)
    grown = time.perf_counter() - began
    scale = 6_000 / series
    return [
        f"6,000 series of {commits} commits on one core, from {series} that were timed: "
        f"{cold * scale:.0f} s from cold, {grown * scale:.2f} s when one commit arrives."
    ]


def real(folder: Path) -> list[str]:
    """What each detector finds in each file."""
    lines = ["| series | values | " + " | ".join(available()) + " |", "|---|---" + "|---" * len(available()) + "|"]
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        listed = content.get("series", []) if isinstance(content, dict) else content
        values = np.array(listed, dtype=np.float64)
        if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
            continue
        found = [_listed(detect(values)) for detect in available().values()]
        lines.append(f"| {path.stem} | {values.size} | " + " | ".join(found) + " |")
    return lines


def _listed(found: Sequence[tuple[int, int]]) -> str:
    if len(found) > LISTED:
        return f"{len(found)} changes"
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found) or "none"


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
