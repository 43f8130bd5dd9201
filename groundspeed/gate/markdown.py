"""The gate's report in Markdown, for a job summary or a comment.

Everything that came from outside (names, reasons, compiler messages) stands inside ``<code>`` with its punctuation as
entities: there it is neither Markdown nor HTML, links to nothing and mentions nobody.
"""

from __future__ import annotations

import re

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.metrics import METRICS
from groundspeed.gate.operators import operator_verdicts, tally, word
from groundspeed.gate.plain import plain
from groundspeed.gate.report import STATUS, Finding, OperatorVerdict, Report
from groundspeed.gate.words import (
    MARKS,
    by_reason,
    change,
    evidence,
    interval,
    metric_label,
    notes,
    noteworthy,
    probability,
    summarise,
    value,
)

# GitHub refuses comments over 65,536 characters; room is left for what a workflow adds.
LIMIT = 60_000
# All but what is harmless wherever it stands; and the dot of "www.", which alone makes a link.
_UNSAFE = re.compile(r"(?<=www)\.|[^A-Za-z0-9 .,=/+%±×→µ–-]", re.IGNORECASE)
COLUMNS = (Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.AMBIGUOUS, Verdict.REGRESSED)
MARKER = "<!-- groundspeed gate -->"  # by which the comment is found again


def render(report: Report, limit: int = LIMIT) -> str:
    """The report, no longer than ``limit`` characters: the full table is cut, and says so."""
    heading = f"### {'✅' if report.result == 'pass' else '❌'} groundspeed gate: {report.result}"
    where = ", ".join(code(part) for part in (report.machine, report.device) if part)
    labels = f"base {code(report.base_label or report.base[:12])}, head {code(report.head_label or report.head[:12])}"
    blocks = [MARKER, heading, f"{code(report.summary)}", f"{labels}{', on ' + where if where else ''}"]
    operators = operator_verdicts(report.findings, report.unmeasured)
    if len(operators) > 1:
        blocks.append(_operators(operators))
    important = noteworthy(report)
    if important:
        blocks.append(_table(important))
        blocks += [_details("What it takes to reproduce", _commands(important))]
    if report.unmeasured:
        reasons = by_reason(report.unmeasured).items()
        lines = [f"- {code(reason)}: {', '.join(map(code, places))}" for reason, places in reasons]
        blocks += [f"**Could not measure ({len(report.unmeasured)})**", "\n".join(lines)]
    if report.remarks:
        blocks.append("\n".join(f"- {code(remark)}" for remark in report.remarks))
    if report.findings:
        blocks.append(_details(f"All findings ({len(report.findings)})", _all(report)))
    return _cut("\n\n".join(block for block in blocks if block), limit)


def code(text: str) -> str:
    """Untrusted text as inert inline code on one line."""
    flat = plain(text) or " "
    return f"<code>{_UNSAFE.sub(_entity, flat)}</code>"


def _entity(match: re.Match[str]) -> str:
    """An empty comment parts an "@" from what stands before it: GitHub finds addresses in text that has no entities."""
    return f"{'<!-- -->' if match[0] == '@' else ''}&#{ord(match[0])};"


def _metric(name: str) -> str:
    """A label of our own as it is. A metric that is not known here has its name from outside."""
    return metric_label(name) if name in METRICS or name == STATUS else code(name)


def _operators(entries: list[OperatorVerdict]) -> str:
    lines = ["| operator | verdict | findings |", "|---|---|---|"]
    lines += [f"| {code(entry.operator)} | {word(entry)} | {tally(entry)} |" for entry in entries]
    return "\n".join(lines)


def _table(findings: list[Finding]) -> str:
    lines = ["| | verdict | series | case | metric | evidence |", "|---|---|---|---|---|---|"]
    for f in findings:
        words = "<br>".join(code(line) for line in [evidence(f), *notes(f)] if line)
        accepted = " (accepted)" if f.accepted else ""
        cells = [
            MARKS[f.verdict],
            f"{f.verdict}{accepted}",
            code(f.series),
            code(f.case),
            _metric(f.metric),
            words,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _commands(findings: list[Finding]) -> str:
    commands = dict.fromkeys(finding.reproduce for finding in findings if finding.reproduce)
    return "<br>".join(code(command) for command in commands)


def _all(report: Report) -> str:
    lines = ["| series | unchanged | improved | ambiguous | regressed | largest |", "|---|--:|--:|--:|--:|--:|"]
    for summary in summarise(report.findings):
        counts = [str(summary.counts.get(verdict, 0)) for verdict in COLUMNS]
        largest = change(summary.largest.ratio) if summary.largest else "–"
        lines.append(f"| {code(summary.series)} | {' | '.join(counts)} | {largest} |")
    lines += ["", "| series | case | metric | verdict | base | head | change | interval | p | q |"]
    lines.append("|---|---|---|---|--:|--:|--:|--:|--:|--:|")
    for f in report.findings:
        cells = [code(f.series), code(f.case), _metric(f.metric), str(f.verdict), value(f.base, f.unit)]
        cells += [value(f.head, f.unit), change(f.ratio), interval(f.low, f.high)]
        cells += [probability(f.p), probability(f.q)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""


def _cut(text: str, limit: int) -> str:
    """Whole lines up to the limit, with what was left open closed and the cut named."""
    if len(text) <= limit:
        return text + "\n"
    end = "\n\n</details>\n\n(cut here: the JSON report has the rest)\n"
    kept = text[: limit - len(end)].rsplit("\n", 1)[0]
    opened = kept.count("<details>") > kept.count("</details>")
    return kept + (end if opened else end.replace("</details>\n\n", ""))
