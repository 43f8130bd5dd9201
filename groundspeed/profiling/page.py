"""The page of a profile: what it says in sections of labelled rows, for a terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from groundspeed.profiling.bound import conflict_share, fits, times
from groundspeed.profiling.kernels import Kernel
from groundspeed.profiling.ncu import STALLS
from groundspeed.profiling.occupancy import Multiprocessor
from groundspeed.profiling.position import Position, Stored
from groundspeed.report.style import Style, printable
from groundspeed.report.units import counted, duration, percent, rate, significant, size

Row = tuple[str, str]

_MOST_KERNELS = 8
_LEAST = 0.005  # of a call's time: what takes less is not shown by itself
_LABEL = 20


@dataclass(frozen=True)
class Section:
    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Page:
    """``sentences`` say what bounds it; ``remarks`` what to know of how it was taken."""

    title: str
    sentences: tuple[str, ...]
    remarks: tuple[str, ...]
    sections: tuple[Section, ...]


def kernel_sections(kernels: Sequence[Kernel], of: Multiprocessor | None, device: str) -> tuple[Section, ...]:
    """A section for each kernel, those that take most of the time first; the rest of very many in one."""
    total = sum(kernel.time_ns for kernel in kernels)
    shown = [kernel for kernel in kernels[:_MOST_KERNELS] if kernel.time_ns >= _LEAST * total]
    noun = "kernel" if device == "cuda" else "operator"
    sections = [
        Section(f"{noun} {number}: {kernel.short}", tuple(_kernel_rows(kernel, of, total)))
        for number, kernel in enumerate(shown, start=1)
    ]
    rest = kernels[len(shown) :]
    if rest:
        time = sum(kernel.time_ns for kernel in rest)
        sections.append(Section(f"{len(rest)} more", (("time", f"{duration(time)}{_share(time, total, 'all')}"),)))
    return tuple(sections)


def roofline_section(where: Position, found: Stored, device: str) -> Section:
    """Rates of the whole call, and where they lie under the ceilings on record."""
    timed_by = "the sum of its kernels" if device == "cuda" else "by the host's clock"
    rows: list[Row] = [("time", f"{duration(where.time_ns)} a call, {timed_by}")]
    if found.device_cold_ns is not None:
        code = "" if found.same_code else ", of other code than this"
        rows.append(("measured before", f"{duration(found.device_cold_ns)} with a cold cache{code} ({found.run_id})"))
    rows.append(("must move", f"{size(where.bytes_read)} read, {size(where.bytes_written)} written"))
    if where.intensity is not None:
        rows.append(("intensity", f"{significant(where.intensity)} FLOP a byte"))
    rates = [(where.bytes_per_second, "B/s"), (where.flops_per_second, "FLOP/s")]
    reached = [rate(value, unit) for value, unit in rates if value]
    if reached:
        rows.append(("reaches", ", ".join(reached)))
    if where.least is not None and where.share is not None:
        rows.append(
            (
                "ceiling",
                f"{duration(where.least.least_ns)} by {where.least.bound}: the call is at {percent(where.share)} of it",
            )
        )
    else:
        how = "groundspeed run measures them" if device == "cuda" else "they are measured on GPUs"
        rows.append(("ceiling", f"none of this machine is on record; {how}"))
    return Section("the call under the roofline", tuple(rows))


def terminal(page: Page, style: Style) -> list[str]:
    """Lines no wider than the terminal."""
    lines = [style.bold(printable(page.title)), ""]
    for sentence in page.sentences:
        lines += _wrapped(sentence, style.width, "  ", "  ")
    for section in page.sections:
        lines += ["", style.bold(printable(section.title))]
        for label, value in section.rows:
            lines += _wrapped(value, style.width, f"  {label:<{_LABEL}} ", " " * (_LABEL + 3))
    lines.append("")
    for remark in page.remarks:
        lines += [style.dim(line) for line in _wrapped(remark, style.width, "", "")]
    return lines


def markdown(page: Page) -> str:
    """The same as Markdown."""
    lines = [f"# {_escaped(page.title)}", "", *(f"- {_escaped(sentence)}" for sentence in page.sentences)]
    for section in page.sections:
        lines += ["", f"## {_escaped(section.title)}", "", "| | |", "|---|---|"]
        lines += [f"| {label} | {_escaped(value)} |" for label, value in section.rows]
    lines += ["", *(line for remark in page.remarks for line in (_escaped(remark), ""))]
    return "\n".join(lines).rstrip() + "\n"


def _kernel_rows(kernel: Kernel, of: Multiprocessor | None, total: float) -> Iterator[Row]:
    often = "" if kernel.launches == 1 else f", {times(kernel.launches)} times a call"
    yield "duration", duration(kernel.duration_ns) + often + _share(kernel.time_ns, total, "the call's")
    if kernel.blocks is not None and kernel.threads is not None:
        waves = kernel.counters.get("waves")
        filled = f"; {significant(waves)} waves" if waves is not None else ""
        yield "grid", f"{counted(kernel.blocks, 'block')} of {counted(kernel.threads, 'thread')}{filled}"
    yield from _resource_rows(kernel)
    yield from _occupancy_rows(kernel, of)
    yield from _counter_rows(kernel)


def _resource_rows(kernel: Kernel) -> Iterator[Row]:
    if kernel.registers is not None:
        yield "registers", f"{kernel.registers} a thread"
    if kernel.shared_bytes is not None:
        yield "shared memory", f"{size(kernel.shared_bytes)} a block"
    seen = kernel.counters
    spilled = [] if kernel.spill_bytes is None else [f"{kernel.spill_bytes} bytes a thread"]
    if "local_loads" in seen:
        stores = seen.get("local_stores", 0.0)
        spilled.append(f"{_count(seen['local_loads'])} local loads and {_count(stores)} stores in all")
    if spilled:
        yield "spills", "; ".join(spilled)


def _occupancy_rows(kernel: Kernel, of: Multiprocessor | None) -> Iterator[Row]:
    fit = fits(kernel, of)
    achieved = kernel.counters.get("occupancy_pct")
    most = kernel.counters.get("theoretical_pct")
    parts = [] if achieved is None else [f"{achieved:.0f} % achieved"]
    if fit is not None:
        share = percent(fit.share) if most is None else f"{most:.0f} %"
        parts.append(f"{share} fit: {counted(fit.blocks, 'block')} a multiprocessor, limited by {fit.limiter}")
    elif most is not None:
        parts.append(f"{most:.0f} % fit")
    if parts:
        yield "occupancy", "; ".join(parts)


def _counter_rows(kernel: Kernel) -> Iterator[Row]:
    seen = kernel.counters
    named = (("dram_pct", "DRAM"), ("l2_pct", "L2"), ("l1_pct", "L1"), ("sm_pct", "multiprocessors"))
    parts = [f"{name} {seen[key]:.0f} %" for key, name in named if key in seen]
    if parts:
        yield "throughput", f"{', '.join(parts)} of peak"
    if "dram_read" in seen:
        yield "crossed DRAM", f"{size(int(seen['dram_read']))} read, {size(int(seen.get('dram_write', 0)))} written"
    hits = [f"{name} {seen[key]:.0f} %" for key, name in (("l1_hit_pct", "L1"), ("l2_hit_pct", "L2")) if key in seen]
    if hits:
        yield "cache hits", ", ".join(hits)
    if "threads_per_instruction" in seen:
        threads = seen["threads_per_instruction"]
        yield "warp efficiency", f"{significant(threads)} of 32 threads an instruction ({percent(threads / 32)})"
    if "branch_pct" in seen:
        yield "branch efficiency", f"{seen['branch_pct']:.0f} % of branches are taken alike by a warp"
    share = conflict_share(kernel)
    if share is not None:
        added = seen.get("conflicts_load", 0.0) + seen.get("conflicts_store", 0.0)
        yield "bank conflicts", f"{_count(added)}, {percent(share)} of the passes of shared memory"
    elif "conflicts_load" in seen:
        yield "bank conflicts", "none: shared memory is not used"
    if "issue_pct" in seen:
        yield "issuing", f"in {seen['issue_pct']:.0f} % of cycles"
    waits = sorted(((seen[f"stall_{name}"], name) for name in STALLS if f"stall_{name}" in seen), reverse=True)
    told = [f"{significant(cycles)} for {STALLS[name]}" for cycles, name in waits[:3] if cycles > 0]
    if told:
        yield "a warp waits", "cycles an instruction: " + ", ".join(told)


def _share(time: float, total: float, whole: str) -> str:
    """Nothing where it is all there is."""
    return f", {percent(time / total)} of {whole}" if 0 < time < total else ""


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _wrapped(text: str, width: int, first: str, later: str) -> list[str]:
    return textwrap.wrap(
        printable(text), width=width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )


def _escaped(text: str) -> str:
    """Safe in a cell of a table: a kernel's name has angle brackets, and may have bars and asterisks."""
    text = printable(" ".join(text.split()))
    for character, written in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("_", "\\_"), ("`", "\\`")):
        text = text.replace(character, written)
    return text
