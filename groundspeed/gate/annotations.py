"""Annotations on the changed files: GitHub's workflow commands and GitLab's code quality report."""

from __future__ import annotations

import hashlib

import msgspec

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.plain import plain
from groundspeed.gate.report import Finding, Report
from groundspeed.gate.words import by_importance, evidence, metric_label, notes

# GitHub shows ten errors and ten warnings of a step and drops the rest.
GITHUB_LIMIT = 10


def github(report: Report) -> str:
    """``::error file=...::message`` lines, to be printed on standard output; empty when there is nothing to say."""
    failing, warning = _annotated(report)
    lines = [_command("error", finding) for finding in failing[:GITHUB_LIMIT]]
    lines += [_command("warning", finding) for finding in warning[:GITHUB_LIMIT]]
    if report.result == "could not measure":
        lines.append(f"::error title=groundspeed gate::{_data(report.summary)}")
    return "".join(f"{line}\n" for line in lines)


def gitlab(report: Report) -> bytes:
    """A code quality artifact (``artifacts:reports:codequality``): one issue a failing or ambiguous finding."""
    failing, warning = _annotated(report)
    severities = [(finding, "critical") for finding in failing] + [(finding, "minor") for finding in warning]
    issues = [
        {
            "description": _text(finding),
            "check_name": f"groundspeed gate: {finding.verdict}",
            "fingerprint": _fingerprint(finding),
            "severity": severity,
            "location": {"path": plain(finding.file) or "pyproject.toml", "lines": {"begin": 1}},
        }
        for finding, severity in severities
    ]
    return msgspec.json.format(msgspec.json.encode(issues), indent=2) + b"\n"


def _annotated(report: Report) -> tuple[list[Finding], list[Finding]]:
    """Failing findings, and those that deserve a warning."""
    ordered = by_importance(report.findings)
    watched = (Verdict.AMBIGUOUS, Verdict.REGRESSED, Verdict.BROKEN, Verdict.REMOVED)
    return [f for f in ordered if f.fails], [f for f in ordered if not f.fails and f.verdict in watched]


def _command(level: str, finding: Finding) -> str:
    place = f"file={_property(finding.file)},line=1," if finding.file else ""
    title = _property(f"{finding.series} {finding.verdict}")
    return f"::{level} {place}title={title}::{_data(_text(finding))}"


def _fingerprint(finding: Finding) -> str:
    """By which GitLab tells an issue that is still there from a new one."""
    words = "\0".join([finding.series, finding.case, finding.metric, finding.verdict])
    return hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()


def _text(finding: Finding) -> str:
    """All of a finding on one line of plain text."""
    what = " · ".join(part for part in (finding.series, finding.case, metric_label(finding.metric)) if part)
    return plain("; ".join([f"{finding.verdict}: {what}: {evidence(finding)}", *notes(finding)]))


def _data(text: str) -> str:
    """Plain, and escaped as GitHub's toolkit does: a message cannot end its line and start a command of its own."""
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
