"""What compute-sanitizer wrote: its reports by kind and place, and whether it looked at all.

The text log is read and not the XML: NVIDIA documents the text with samples and gives the XML no schema. Layouts of
several releases are understood; the samples are those of the Compute Sanitizer user manual, "Tool Examples".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PREFIX = re.compile(r"^=========( .*)?$")
_SUMMARY = re.compile(r"^(ERROR|RACECHECK) SUMMARY: ([\d,]+)")
_RACE_COUNTS = re.compile(r"\(([\d,]+) errors?, ([\d,]+) warnings?\)")
_SEVERITY = re.compile(r"^(error|warning|info): ", re.IGNORECASE)
# Lines below a report's first one. Recent releases indent them by four spaces more, and some by none.
_CONTINUES = re.compile(r"^(at |by thread|and |Address |Access |Device Frame|Saved host|Host Frame|Current Value)")
_BANNER = re.compile(r"^(COMPUTE-SANITIZER|Process ID|Launch #|LEAK SUMMARY|Tracking kernels|Default timeout)")
# What the tool says of itself: the kernels that it speaks of went unwatched.
_TOOL_FAILED = re.compile(
    r"Internal Sanitizer Error|No attachable process found|terminated before first instrumented|Device not supported"
    r"|^Error: (?!Race reported|Potential )|Unable to |Failed to |timed-out"
)
_APPLICATION_FAILED = re.compile(r"Target application returned an error|process didn't terminate successfully")

_OFFSET_FIRST = re.compile(r"^0x[0-9a-f]+ in (?P<rest>.+)$", re.IGNORECASE)
_OFFSET_LAST = re.compile(r"^(?P<function>.+?)(?:\+|:)0x[0-9a-f]+(?: in (?P<place>\S.*))?$", re.IGNORECASE)
_CLONE = re.compile(r"^\[clone (?P<caller>.+)\] (?P<callee>.+)$")
_HAZARDS = re.compile(r"\s*\[[\d,]+ hazards?\]$")
_RACE = re.compile(r"Race reported between (?P<access>\w+) access at (?P<spot>.+)$")
_RACE_AND = re.compile(r"^and (?P<access>\w+) access at (?P<spot>.+)$")


@dataclass(frozen=True, order=True)
class Report:
    """One finding, without what differs from thread to thread.

    kind
        What happened, in the tool's words: ``Invalid __global__ write of size 4 bytes``.
    kernel
        The demangled function, as the tool writes it; empty where it names none.
    place
        ``file.cu:31``, several of them for a race; empty where the tool knows no line.
    severity
        ``error`` or ``warning``.
    """

    kind: str
    kernel: str = ""
    place: str = ""
    severity: str = "error"


@dataclass(frozen=True)
class Log:
    """A whole log.

    errors, warnings
        As the tool's own summary counts them; reports are printed only up to a limit.
    complete
        Whether there is a summary: without one the tool did not see the end.
    problem
        Why the tool did not watch everything, in its own words; else empty.
    """

    reports: tuple[Report, ...]
    errors: int
    warnings: int
    complete: bool
    problem: str = ""

    @property
    def clean(self) -> bool:
        return self.complete and not self.problem and not self.errors and not self.warnings


def parse_log(text: str) -> Log:
    """Read a log; lines that the tool did not write (the program's own) are passed over."""
    reports: list[Report] = []
    problem = ""
    errors = warnings = 0
    complete = False
    for first, rest in _blocks(text.splitlines()):
        summary = _SUMMARY.match(first)
        if summary:
            complete = True
            errors, warnings = _counts(first, summary)
        elif _APPLICATION_FAILED.search(first):
            continue  # the process tells itself how far it came
        elif _TOOL_FAILED.search(first):
            problem = problem or first
        elif not _BANNER.match(first):
            reports.append(_report(first, rest))
    if complete and reports and not errors and not warnings:
        errors = len(reports)  # what was reported counts, whatever the summary says
    return Log(tuple(reports), errors, warnings, complete, problem)


def distinct(reports: Iterable[Report]) -> tuple[Report, ...]:
    """Each report once, in the order in which they came."""
    return tuple(dict.fromkeys(reports))


def _counts(line: str, summary: re.Match[str]) -> tuple[int, int]:
    parts = _RACE_COUNTS.search(line)
    if parts:
        return _number(parts.group(1)), _number(parts.group(2))
    return _number(summary.group(2)), 0


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Each message's first line and those below it, without prefix and indentation."""
    first, rest = "", list[str]()
    for line in lines:
        match = _PREFIX.match(line.rstrip())
        if not match:
            continue
        said = (match.group(1) or "")[1:]
        text = said.strip()
        if first and text and (said.startswith("  ") or _CONTINUES.match(text)):
            rest.append(text)
            continue
        if first:
            yield first, rest
        first, rest = text, []
    if first:
        yield first, rest


def _report(first: str, rest: list[str]) -> Report:
    severity = _SEVERITY.match(first)
    level = severity.group(1).lower() if severity else "error"
    text = first[severity.end() :] if severity else first
    race = _RACE.search(text)
    if race:
        return _race_report(race, rest, level)
    function, place = next((_spot(line[3:]) for line in rest if line.startswith("at ")), ("", ""))
    kernel = _outermost(rest) or function
    return Report(_without_numbers(text), kernel, place, level)


def _race_report(race: re.Match[str], rest: list[str], level: str) -> Report:
    sides = [race, *(match for line in rest if (match := _RACE_AND.match(line)))]
    spots = [_spot(_HAZARDS.sub("", side.group("spot"))) for side in sides]
    accesses = " and ".join(dict.fromkeys(side.group("access").lower() for side in sides))
    places = ", ".join(dict.fromkeys(place for _, place in spots if place))
    return Report(f"Race between {accesses} in shared memory", spots[0][0], places, level)


def _spot(text: str) -> tuple[str, str]:
    """Function and place of ``kernel(int *)+0x90 in file.cu:12``, ``0x90 in file.cu:12:kernel(int *)`` and others."""
    old = _OFFSET_FIRST.match(text)
    if old:
        placed = re.match(r"^(?P<place>.+?:\d+):(?P<function>.+)$", old.group("rest"))
        return (placed["function"], _base(placed["place"])) if placed else (old.group("rest"), "")
    new = _OFFSET_LAST.match(text)
    if not new:
        return text, ""
    function, place = new.group("function"), new.group("place")
    clone = _CLONE.match(function)
    return (clone["caller"] if clone else function), _base(place or "")


def _outermost(rest: list[str]) -> str:
    """The last device frame: the kernel itself, where the fault lies in a function that it calls."""
    frames = [re.sub(r"^Device Frame:\s*", "", line) for line in rest if line.startswith("Device Frame")]
    return _spot(frames[-1])[0] if frames else ""


def _base(place: str) -> str:
    """``/a/b/file.cu:12`` → ``file.cu:12``; what is no file and line stays out."""
    return place.rpartition("/")[2] if re.search(r":\d+$", place) else ""


def _without_numbers(text: str) -> str:
    """Addresses and blocks out of a kind: ``Potential WAW hazard detected at __shared__ 0x0 in block (0,0,0) :``."""
    text = re.sub(r"\s*\bin block \([\d, ]+\)|\s*\b0x[0-9a-f]+\b", "", text)
    return text.strip(" :.")
