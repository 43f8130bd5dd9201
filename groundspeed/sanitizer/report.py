"""Verdicts as lines of a terminal, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from groundspeed.kernel_names import instance_name
from groundspeed.report.style import Style, printable
from groundspeed.report.units import clock, counted
from groundspeed.sanitizer.sweep import Finding, Verdict

_SHOWN_CASES = 4


def verdict_lines(verdict: Verdict, wide: int, style: Style) -> list[str]:
    """One line for an implementation, and below it what was found; ``wide`` columns are for its name."""
    name = style.backend(verdict.label.ljust(wide), verdict.implementation.name)
    lines = [f"{name}  {_headline(verdict, style)}"]
    if verdict.reason:
        lines += _wrapped(verdict.reason, style, "    ")
    if verdict.smallest:
        lines += _wrapped(f"takes no case within the limit: of those over it {verdict.smallest} was run", style, "    ")
    for finding in verdict.findings:
        lines += _finding(finding, style)
    return lines


def summary_line(verdicts: Sequence[Verdict], check: str, seconds: float, style: Style) -> str:
    """How many of each state, and how long it took."""
    states: Counter[str] = Counter(verdict.state for verdict in verdicts)
    words = {"clean": "clean", "errors": "with errors", "failed": "failed", "skipped": "skipped"}
    parts = [f"{states[state]} {word}" for state, word in words.items() if states[state] or state == "clean"]
    if states["unknown"]:
        parts.append(f"{states['unknown']} not watched to the end")
    text = f"{check}: {counted(len(verdicts), 'implementation')}, {', '.join(parts)}; {clock(seconds)}"
    good = states["clean"] and not states["errors"] + states["failed"] + states["unknown"]
    return style.good(text) if good else style.bad(text)


def _headline(verdict: Verdict, style: Style) -> str:
    over = f", {verdict.left_out} over the limit" if verdict.left_out else ""
    if verdict.state == "clean":
        return style.good("clean") + f"  {counted(len(verdict.ran), 'case')}{over}"
    if verdict.state == "errors":
        counts = [counted(n, noun) for n, noun in ((verdict.errors, "error"), (verdict.warnings, "warning")) if n]
        return style.bad(" and ".join(counts) + over)
    words = {"failed": "failed", "skipped": "skipped", "unknown": "not watched to the end"}
    text = words[verdict.state] + over
    return text if verdict.state == "skipped" else style.bad(text)


def _finding(finding: Finding, style: Style) -> list[str]:
    report = finding.report
    warning = "warning: " if report.severity == "warning" else ""
    lines = _wrapped(f"{warning}{report.kind}", style, "    ")
    where = ", ".join(part for part in (instance_name(report.kernel) if report.kernel else "", report.place) if part)
    if where:
        lines += _wrapped(f"in {where}", style, "      ")
    if finding.cases:
        more = len(finding.cases) - _SHOWN_CASES
        shown = "; ".join(finding.cases[:_SHOWN_CASES]) + (f"; and {more} more cases" if more > 0 else "")
        lines += _wrapped(f"of {shown}", style, "      ")
    else:
        lines += _wrapped("of no case alone: it needs what ran before", style, "      ")
    return lines


def _wrapped(text: str, style: Style, indent: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width=style.width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
