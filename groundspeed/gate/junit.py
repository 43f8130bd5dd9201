"""The gate's report as JUnit XML: a suite an implementation, a test case a finding.

All text is plain: of what XML 1.0 cannot hold nothing is left, nor of what would drive a terminal that shows it.
"""

from __future__ import annotations

from xml.etree import ElementTree

from groundspeed.analysis.rule import Verdict
from groundspeed.gate.plain import plain
from groundspeed.gate.report import Finding, Report, Unmeasured
from groundspeed.gate.words import evidence, metric_label, notes


def render(report: Report) -> bytes:
    """Failing findings are failures, unmeasured ones errors, ambiguous, accepted and unfailing ones skipped."""
    root = ElementTree.Element("testsuites", name="groundspeed gate")
    groups: dict[str, list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault(finding.series, []).append(finding)
    for series, findings in groups.items():
        suite = ElementTree.SubElement(root, "testsuite", name=plain(series))
        for finding in findings:
            _add(suite, finding)
        _count(suite)
    if report.unmeasured or not report.findings:
        suite = ElementTree.SubElement(root, "testsuite", name="could not measure")
        for entry in report.unmeasured:
            _add_unmeasured(suite, entry)
        if report.result == "could not measure" and not report.unmeasured:
            _add_unmeasured(suite, Unmeasured("gate", "", "", report.summary))
        _count(suite)
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="utf-8") + b"\n"


def _add(suite: ElementTree.Element, finding: Finding) -> None:
    name = " · ".join(part for part in (finding.case, metric_label(finding.metric)) if part) or str(finding.verdict)
    case = ElementTree.SubElement(suite, "testcase", classname=plain(finding.series), name=plain(name))
    if finding.file:
        case.set("file", plain(finding.file))
    message = plain(f"{finding.verdict}: {evidence(finding)}")
    text = "\n".join(filter(None, map(plain, [*notes(finding), finding.reproduce])))
    if finding.fails:
        ElementTree.SubElement(case, "failure", message=message, type=str(finding.verdict)).text = text
    elif finding.verdict in (Verdict.AMBIGUOUS, Verdict.REGRESSED, Verdict.BROKEN, Verdict.REMOVED):
        ElementTree.SubElement(case, "skipped", message=message).text = text
    elif finding.verdict is not Verdict.UNCHANGED:
        ElementTree.SubElement(case, "system-out").text = f"{message}\n{text}".strip()


def _add_unmeasured(suite: ElementTree.Element, entry: Unmeasured) -> None:
    series = "/".join(part for part in (entry.operator, entry.implementation) if part)
    case = ElementTree.SubElement(suite, "testcase", classname=plain(series), name=plain(entry.case or "all cases"))
    ElementTree.SubElement(case, "error", message=plain(entry.reason), type="could not measure")


def _count(suite: ElementTree.Element) -> None:
    for attribute, path in (("tests", "testcase"), ("failures", ".//failure"), ("errors", ".//error")):
        suite.set(attribute, str(len(suite.findall(path))))
    suite.set("skipped", str(len(suite.findall(".//skipped"))))
