"""From what a profiler saw to the page."""

from __future__ import annotations

from datetime import UTC, datetime

from groundspeed.analysis.stats import median
from groundspeed.git import Commit
from groundspeed.operator import Case, Operator
from groundspeed.profiling.bound import sentences
from groundspeed.profiling.kernels import Kernel, gather, with_resources
from groundspeed.profiling.occupancy import multiprocessor
from groundspeed.profiling.page import Page, kernel_sections, roofline_section
from groundspeed.profiling.position import Stored, position
from groundspeed.profiling.run import Seen
from groundspeed.records import Environment
from groundspeed.report.units import counted

_TAKEN = {
    "ncu": "Every kernel ran alone and with its caches emptied, several times over.",
    "nsys": "Calls ran one behind the other: caches are as the call before left them.",
    "torch": "Calls ran one behind the other: caches are as the call before left them.",
}


def compose(
    name: str, seen: Seen, reason: str, spec: Operator, case: Case, found: Stored, commit: Commit, now: str = ""
) -> Page:
    """``reason`` says why a tool that sees less was taken; ``now`` is the time, in UTC."""
    answer = seen.answer
    environment = answer.environment or Environment("", "", "", "")
    kernels = with_resources(gather(seen.launches, seen.calls), answer.resources)
    limits = multiprocessor(environment.capability)
    time_ns = _time(seen, kernels, environment.device)
    where = position(spec, case, time_ns, found.ceilings)
    remarks = [_taken_where(seen, environment, commit, now), _TAKEN[seen.tool]]
    if answer.tuned:
        remarks.append(f"The autotuner chose {answer.tuned}.")
    if reason:
        remarks.append(reason)
    return Page(
        title=f"{name}, {case.label}",
        sentences=tuple(sentences(kernels, where, limits, environment.device, environment.multiprocessors)),
        remarks=tuple(remarks),
        sections=(
            roofline_section(where, found, environment.device),
            *kernel_sections(kernels, limits, environment.device),
        ),
    )


def _time(seen: Seen, kernels: tuple[Kernel, ...], device: str) -> float:
    """Of one call: its kernels' own, without gaps between them; on a CPU the whole call."""
    if device == "cuda":
        return sum(kernel.time_ns for kernel in kernels)
    return median(seen.answer.call_ns)


def _taken_where(seen: Seen, environment: Environment, commit: Commit, now: str) -> str:
    tool = {"torch": "torch.profiler"}.get(seen.tool, seen.tool)
    version = f" {seen.version}" if seen.version else ""
    dirty = " with changes" if commit.dirty else ""
    of = f"commit {commit.hash[:8]}{dirty}" if commit.hash else "no commit"
    when = now or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{environment.device_name}, {tool}{version}, {counted(seen.calls, 'call')}, {of}, {when}."
