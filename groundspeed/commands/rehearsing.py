"""The rehearsal of ``groundspeed run``, shown, and where what autotuners chose is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from groundspeed.compiler_caches import tunings_of
from groundspeed.measure.lane import Lane
from groundspeed.rehearsal import occasion, performance
from groundspeed.rehearsal.parts import Part
from groundspeed.report.progress import Display, Estimate
from groundspeed.report.style import Style
from groundspeed.report.units import clock, counted
from groundspeed.session import Preparation, Run

_NAME = "rehearsal"  # what it goes by beside the operators


def rehearse(runs: Mapping[str, Run], lanes: Sequence[Lane], say: Callable[[str], None]) -> Preparation:
    """Compile and tune beforehand where that is worth it. On a GPU Triton's tunings are kept in any case.

    Raises GpuBusy where the one GPU did not become free.
    """
    place = lanes[0].place
    if place.gpu is None:
        return Preparation()
    tunings = tunings_of(place.gpu.name)
    parts = occasion.worthwhile(runs, place)
    began = monotonic()
    if parts and occasion.undisturbed(lanes, say):
        try:
            _show(parts, lanes, tunings)
        except OSError as error:
            say(f"{_NAME}: none, since {error.filename} cannot be written: {error.strerror}")
            return Preparation(tunings)
        return Preparation(tunings, monotonic() - began)
    return Preparation(tunings)


def _show(parts: Sequence[Part], lanes: Sequence[Lane], tunings: Path) -> None:
    style = Style.of(sys.stderr)
    display = Display(sys.stderr, style, Estimate({_NAME: performance.seconds_of(parts, lanes)}))
    pairs = counted(sum(part.pairs for part in parts), "implementation and case", "implementations and cases")
    display.begin(_NAME, f"{pairs} to compile and tune side by side, unmeasured")
    told = 0

    def tell(part: Part, share: float) -> None:
        nonlocal told
        display.update(_NAME, "compiled", part.operator, share)
        if (tenths := int(10 * share + 1e-9)) > told:
            told = tenths
            display.note(f"{_NAME}: {10 * tenths} % compiled, {part.operator} last")

    done = performance.rehearse(parts, lanes, tunings, tell)
    for problem in done.problems:
        display.note(f"{_NAME}: {problem}")
    failed = f", {done.failed} failed and have their turn later" if done.failed else ""
    display.end(_NAME, f"{done.done} compiled and tuned{failed}")
    if done.timed_s >= 1.0:
        waited = f"workers waited {clock(done.waited_s)} for that, together"
        display.note(f"{_NAME}: candidates were timed, one at a time on a GPU, for {clock(done.timed_s)}; {waited}")
