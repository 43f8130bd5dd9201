"""What a search prints: one line a comparison, and the answer with the command that measures it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from groundspeed.bisect.commits import Row, Version
from groundspeed.bisect.comparing import Compared
from groundspeed.bisect.hunt import Found
from groundspeed.bisect.search import State, steps_left
from groundspeed.gate.git import merge_base
from groundspeed.gate.plain import plain
from groundspeed.gate.words import change, interval
from groundspeed.git import git
from groundspeed.operator import Case
from groundspeed.report.style import clip

SUBJECT = 50  # characters of a commit's subject that a line has room for


@dataclass(frozen=True)
class Asked:
    """What was typed: the implementation by its name at the bad end, the two ends, and further options as words."""

    root: Path
    name: str
    good: str
    bad: str
    metric_label: str
    options: tuple[str, ...]


def headline(asked: Asked, row: Row) -> str:
    count = len(row.versions)
    how = "touch impls/, and none what it imports" if row.whole else "change it"
    commits = f"{count} commits of {plain(asked.good)}..{plain(asked.bad)} {how}"
    return f"{asked.name}, {asked.metric_label}: {commits}; about {steps_left(-1, count - 1) + 1} comparisons"


def nothing(asked: Asked) -> str:
    return f"good and bad do not differ: no commit between them changes {asked.name}, nor anything else in impls/"


def same(asked: Asked, cases: str) -> str:
    return f"good and bad do not differ in {asked.metric_label}, measured on {cases}"


def told(asked: Asked, step: int, version: Version, compared: Compared) -> str:
    """One comparison: which, of what commit, what came of it. Step 0 is the bad end, compared on every case."""
    what = f"step {step}" if step else "bad end"
    case = "" if step else f"  {compared.case.label}"
    subject = clip(plain(_log(asked.root, version.commit, "%s")), SUBJECT)
    return f"{what:<8} {version.commit[:10]}  {_evidence(compared)}{case}  {subject}".rstrip()


def answer(asked: Asked, good: Version, found: Found) -> list[str]:
    """The first bad commit, its size against the good end, and what to type to see it again."""
    *others, first = (version.commit for version in found.candidates)
    if others:
        lines = [
            f"the first bad commit is {first} or one before it that cannot be told:",
            f"    {' '.join(commit[:10] for commit in others)}",
        ]
    else:
        lines = [f"first bad commit: {first}"]
    lines += [
        f"    {plain(_log(asked.root, first, '%s (%an, %as)'))}",
        f"    {found.bad.case.label}: {_size(found.bad)} over {good.commit[:10]}",
        f"    again: {_command(asked, found.bad.case, found.good.commit, first)}",
    ]
    parents = _log(asked.root, first, "%P").split()
    if len(parents) > 1:
        inside = _command(asked, found.bad.case, merge_base(asked.root, parents[0], parents[1]), parents[1])
        lines.append(f"    it is a merge; among what it merged: {inside}")
    return lines


def _command(asked: Asked, case: Case, good: str, bad: str) -> str:
    words = ["groundspeed", "bisect", asked.name, case.dtype, case.shape_label, good[:12], bad[:12]]
    return shlex.join([*words, *asked.options])


def _evidence(compared: Compared) -> str:
    """``good  +0.2 % [-0.1, +0.4] %``, or what speaks against telling."""
    size = _size(compared)
    if compared.state is State.UNKNOWN:
        return " ".join(part for part in ("passed over:", size, plain(compared.reason)) if part)
    return f"{compared.state.value:<4}  {size or 'the same code as the good end'}"


def _size(compared: Compared) -> str:
    finding = compared.finding
    if finding is None or finding.ratio is None:
        return ""
    return f"{change(finding.ratio)} {interval(finding.low, finding.high)}".strip()


def _log(root: Path, commit: str, form: str) -> str:
    return git(root, "log", "-1", f"--format={form}", commit) or ""
