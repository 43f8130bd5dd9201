"""The gate's table for a terminal: what needs attention first, then a line an implementation, then one an operator."""

from __future__ import annotations

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.operators import operator_verdicts, tally, word
from groundspeed.gate.plain import plain, wrapped
from groundspeed.gate.report import Finding, OperatorVerdict, Report
from groundspeed.gate.words import (
    MARKS,
    SeriesSummary,
    by_reason,
    change,
    cost,
    evidence,
    metric_label,
    notes,
    noteworthy,
    summarise,
    title,
)
from groundspeed.report.style import Style, clip, pad

AGAIN = (Verdict.REGRESSED, Verdict.BROKEN, Verdict.AMBIGUOUS)
COLUMNS = (Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.AMBIGUOUS, Verdict.REGRESSED)


def render(report: Report, style: Style) -> str:
    """The whole report. Nothing in it can move the cursor or forge a line; only commands may exceed the width."""
    lines = _header(report, style)
    for finding in noteworthy(report):
        lines += ["", *_finding(finding, style)]
    # Neither wrapped nor cut: a command that is broken over lines cannot be copied.
    commands = dict.fromkeys(plain(f.reproduce) for f in noteworthy(report) if f.reproduce and f.verdict in AGAIN)
    if commands:
        lines += ["", style.dim("to measure again:"), *commands]
    if report.unmeasured:
        lines += ["", style.bad(f"could not measure ({len(report.unmeasured)})")]
        for reason, places in by_reason(report.unmeasured).items():
            lines += wrapped(reason, style.width, "  ")
            lines += [f"    {clip(plain(place), style.width - 4)}" for place in places]
    if report.findings:
        lines += ["", *_table(summarise(report.findings), style)]
    operators = operator_verdicts(report.findings, report.unmeasured)
    lines += ["", *(line for entry in operators for line in _operator(entry, style))] if operators else []
    for remark in report.remarks:
        lines += wrapped(remark, style.width, "note: ")
    if report.steps:
        lines += ["", *(style.dim(line) for line in wrapped(cost(report), style.width, ""))]
    verdict = style.good if report.result == "pass" else style.bad
    lines += ["", *(verdict(line) for line in wrapped(title(report), style.width, ""))]
    return "\n".join(lines)


def _header(report: Report, style: Style) -> list[str]:
    where = " ".join(part for part in (report.machine, report.device) if part)
    text = f"base {report.base_label or report.base[:12]}  head {report.head_label or report.head[:12]}  {where}"
    return [style.bold(clip(plain(text.strip()), style.width))]


def _finding(finding: Finding, style: Style) -> list[str]:
    mark = f"{MARKS[finding.verdict]} {finding.verdict}"
    colour = style.bad if finding.fails else style.good if finding.verdict is Verdict.IMPROVED else style.bold
    what = " · ".join(part for part in (finding.series, finding.case, metric_label(finding.metric)) if part)
    first = f"{colour(mark)}  {clip(plain(what), style.width - len(mark) - 2)}"
    lines = [first, *wrapped(evidence(finding), style.width, "    ")]
    for note in notes(finding):
        lines += wrapped(note, style.width, "    ")
    return lines


def _operator(entry: OperatorVerdict, style: Style) -> list[str]:
    """The verdict in a column of its own, then the operator and its counts."""
    colour = style.good if entry.result == "pass" else style.bad
    head = f"{pad(word(entry), 20)}  "
    first, *others = wrapped(f"{entry.operator}: {tally(entry)}", style.width, head)
    return [colour(head) + first[len(head) :], *others]


def _table(summaries: list[SeriesSummary], style: Style) -> list[str]:
    room = style.width - 4 * 10 - 10
    wide = min(room, max(len(summary.series) for summary in summaries))
    head = "".join(pad(str(verdict), 10, ">") for verdict in COLUMNS)
    lines = [style.dim(f"{pad('', wide)}{head}{pad('largest', 10, '>')}")]
    for summary in summaries:
        cells = "".join(pad(str(summary.counts.get(verdict, 0) or "·"), 10, ">") for verdict in COLUMNS)
        largest = change(summary.largest.ratio) if summary.largest else "–"
        others = [f"{n} {verdict}" for verdict, n in summary.counts.items() if verdict not in COLUMNS]
        lines.append(f"{pad(clip(plain(summary.series), wide), wide)}{cells}{pad(largest, 10, '>')}")
        if others:
            lines.append(style.dim(f"  {', '.join(others)}"))
    return lines
