"""The outputs say what was found. What they do with texts from outside is in test_hostile.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import msgspec
import pytest

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate import annotations as ci
from groundspeed.gate import junit, markdown, terminal
from groundspeed.gate.operators import operator_verdicts
from groundspeed.gate.report import (
    Finding,
    OperatorVerdict,
    Report,
    Step,
    Touched,
    Unmeasured,
    encode,
    read_report,
    schema,
)
from groundspeed.report.style import Style

PAYLOAD = (
    "<script>alert(1)</script> | `x` @someone [a](javascript:b) #1 ![i](http://e/)\n"
    "::set-env name=A::b\n<!-- \x1b[2J -->"
)


def finding(**more):
    known = {
        "operator": "softmax",
        "implementation": "triton_row",
        "metric": "device_cold",
        "verdict": Verdict.REGRESSED,
        "dtype": "float16",
        "shape": "M=4096,N=1024",
        "unit": "ns",
        "threshold": 0.03,
        "base": 12_300.0,
        "head": 13_100.0,
        "ratio": 1.065,
        "low": 1.061,
        "high": 1.070,
        "p": 0.002,
        "q": 0.01,
        "processes": 10,
        "file": "impls/softmax/triton_row.py",
        "reproduce": "groundspeed gate --base main --only softmax/triton_row",
    }
    return Finding(**known | more)


def report(*findings, result="regressed", unmeasured=(), remarks=()):
    return Report(
        result=result,
        summary="1 regressed of 12 compared",
        base="a" * 40,
        head="worktree",
        machine="nvidia-h200",
        findings=list(findings),
        unmeasured=list(unmeasured),
        remarks=list(remarks),
        compared=12,
    )


def test_a_markdown_table_keeps_its_columns():
    lines = markdown.render(report(finding(implementation=PAYLOAD, reason=PAYLOAD))).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows and all(row.count("|") in (7, 8, 11) for row in rows)
    assert "@" not in "".join(lines) and "javascript:b" not in "".join(lines)


def test_markdown_stays_below_what_a_comment_may_hold_and_says_that_it_was_cut():
    text = markdown.render(report(*[finding(shape=f"M={i}") for i in range(3000)]))
    assert len(text) <= markdown.LIMIT and "cut here" in text
    assert text.count("<details>") == text.count("</details>")


def test_junit_has_a_failure_an_error_or_something_skipped_where_it_should():
    made = report(
        finding(),
        finding(verdict=Verdict.AMBIGUOUS),
        finding(verdict=Verdict.NEW, metric="status"),
        unmeasured=[Unmeasured("softmax", "triton_row", "float16 M=1", "lost")],
    )
    root = ElementTree.fromstring(junit.render(made))
    assert len(root.findall(".//failure")) == 1
    assert len(root.findall(".//error")) == 1
    assert len(root.findall(".//skipped")) == 1


def test_junit_counts_and_names():
    root = ElementTree.fromstring(junit.render(report(finding(), finding(verdict=Verdict.UNCHANGED))))
    (suite,) = root.findall("testsuite")
    assert suite.attrib == {"name": "softmax/triton_row", "tests": "2", "failures": "1", "errors": "0", "skipped": "0"}
    assert "+6.5 %" in root.find(".//failure").get("message")


def test_junit_of_nothing_compared_is_an_error_not_an_empty_success():
    root = ElementTree.fromstring(junit.render(report(result="could not measure")))
    assert len(root.findall(".//error")) == 1


def test_github_annotations_name_file_and_change():
    text = ci.github(report(finding(), finding(verdict=Verdict.AMBIGUOUS)))
    first, second = text.splitlines()
    assert first.startswith("::error file=impls/softmax/triton_row.py,line=1,title=softmax/triton_row regressed::")
    assert second.startswith("::warning ")
    assert ci.github(report(result="pass")) == ""
    assert ci.github(report(result="could not measure")).startswith("::error title=groundspeed gate::")


def test_gitlab_issues_have_distinct_fingerprints():
    issues = json.loads(ci.gitlab(report(finding(), finding(shape="M=1"), finding(verdict=Verdict.UNCHANGED))))
    assert len(issues) == len({issue["fingerprint"] for issue in issues}) == 2
    assert issues[0]["location"] == {"path": "impls/softmax/triton_row.py", "lines": {"begin": 1}}


def test_the_terminal_shows_the_important_first_and_the_verdict_last():
    made = report(
        finding(verdict=Verdict.UNCHANGED, ratio=1.001),
        finding(verdict=Verdict.IMPROVED, ratio=0.8),
        finding(cause="the autotuner chose B (base: A)"),
    )
    text = terminal.render(made, Style())
    assert text.index("regressed") < text.index("improved")
    assert "12.3 µs → 13.1 µs, +6.5 % [+6.1, +7.0] %, T 3 %, 10 processes, p=0.002, q=0.01" in " ".join(text.split())
    assert "cause: the autotuner chose B (base: A)" in text
    assert text.splitlines()[-1] == "gate: regressed: 1 regressed of 12 compared"


@pytest.mark.parametrize("ratio", [None, 1.0])
def test_json_has_no_infinities(ratio):
    made = json.loads(encode(report(finding(ratio=ratio))), parse_constant=pytest.fail)
    assert made["schema"] == 1 and made["findings"][0]["ratio"] == ratio


def test_p_and_q_are_the_same_in_every_output():
    made = report(finding(p=0.0019531, q=0.19))
    shown = "10 processes, p=0.002, q=0.19"
    assert shown in " ".join(terminal.render(made, Style()).split())
    assert shown in ElementTree.fromstring(junit.render(made)).find(".//failure").get("message")
    assert shown in ci.github(made) and shown in ci.gitlab(made).decode()
    assert shown in markdown.render(made) and "| 0.002 | 0.19 |" in markdown.render(made)
    without = terminal.render(report(finding(p=None, q=None)), Style())
    assert "10 processes" in without and "p=" not in without


def test_the_schema_lists_every_field_of_a_report():
    described = json.loads(schema())
    for struct in (Report, OperatorVerdict, Finding, Unmeasured, Step, Touched):
        assert set(described["$defs"][struct.__name__]["properties"]) == {
            f.name for f in msgspec.structs.fields(struct)
        }


def test_a_stored_report_is_rendered_again_and_checked(tmp_path):
    path = tmp_path / "report.json"
    made = report(finding(), remarks=["a remark"])
    path.write_bytes(encode(made))
    assert read_report(path) == made
    for text in (b"", b"[]", encode(made).replace(b'"schema": 1', b'"schema": 2'), encode(made).replace(b"12", b'"x"')):
        path.write_bytes(text)
        with pytest.raises(UserError, match=r"report\.json"):
            read_report(path)
    with pytest.raises(UserError, match="No such file"):
        read_report(tmp_path / "absent")


def test_a_fault_in_an_output_is_no_regression(repo, monkeypatch, capsys):
    """A traceback would end with 1, which says that something became slower."""

    def fail(report):
        raise ValueError("no such mark")

    monkeypatch.setattr(junit, "render", fail)
    repo.edit("impls/double/triton_row.py", "COST = 500", "COST = 600")
    assert repo.gate("--base", "main").status == 1
    assert repo.gate("--base", "main", "--junit", str(repo.root.parent / "out.xml")).status == 2


def test_a_closed_output_changes_neither_the_status_nor_the_files(tmp_path):
    """``groundspeed gate … | head`` must not read as a pass, and what is uploaded afterwards is there."""
    path, page = tmp_path / "report.json", tmp_path / "out.md"
    for verdict, result, status in ((Verdict.REGRESSED, "regressed", 1), (Verdict.UNCHANGED, "pass", 0)):
        path.write_bytes(encode(report(finding(verdict=verdict), result=result)))
        page.unlink(missing_ok=True)
        reader, writer = os.pipe()
        os.close(reader)
        words = [sys.executable, "-m", "groundspeed", "gate", "--report", str(path), "--markdown", str(page)]
        with os.fdopen(writer, "wb") as closed:
            done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (status, "")
        assert "softmax" in page.read_text(encoding="utf-8")


OPERATORS = (
    finding(verdict=Verdict.UNCHANGED, ratio=1.0),
    finding(verdict=Verdict.IMPROVED, ratio=0.9),
    finding(operator="matmul", verdict=Verdict.UNCHANGED),
    finding(operator="matmul", verdict=Verdict.REGRESSED),
    finding(operator="matmul", verdict=Verdict.REGRESSED, accepted="known"),
    finding(operator="matmul", verdict=Verdict.BROKEN, report_only=True),
    finding(operator="copy", verdict=Verdict.UNCHANGED),
    finding(operator="add", verdict=Verdict.REGRESSED, accepted="known"),
    finding(operator="add", verdict=Verdict.AMBIGUOUS),
    finding(operator="sort", verdict=Verdict.REGRESSED, report_only=True),
)
LOST = (Unmeasured("copy", "triton_row", "float16 M=1", "lost"), Unmeasured("rope", "", "", "no spec of base"))


def test_an_operator_has_the_worst_of_its_findings_and_their_counts():
    """Worst is what fails, then what was not measured: that it could have failed is all that is known."""
    found = {entry.operator: entry for entry in operator_verdicts(OPERATORS, LOST)}
    assert list(found) == ["matmul", "rope", "copy", "add", "sort", "softmax"]
    assert found["matmul"] == OperatorVerdict(
        *("matmul", "regressed", Verdict.REGRESSED),
        counts={Verdict.REGRESSED: 2, Verdict.BROKEN: 1, Verdict.UNCHANGED: 1},
        excused=2,
    )
    assert found["copy"] == OperatorVerdict(
        "copy", "could not measure", Verdict.UNCHANGED, {Verdict.UNCHANGED: 1}, 0, 1
    )
    assert found["rope"] == OperatorVerdict("rope", "could not measure", None, {}, 0, 1)
    assert (found["add"].result, found["add"].verdict, found["add"].excused) == ("pass", Verdict.REGRESSED, 1)
    assert (found["sort"].result, found["sort"].excused) == ("pass", 1)
    assert (found["softmax"].result, found["softmax"].verdict) == ("pass", Verdict.IMPROVED)


def test_an_operator_that_fails_by_less_than_its_accepted_finding_has_the_verdict_that_fails():
    mixed = (finding(accepted="known"), finding(verdict=Verdict.BROKEN, metric="status"))
    (entry,) = operator_verdicts(mixed, ())
    assert (entry.result, entry.verdict) == ("regressed", Verdict.BROKEN)


def test_every_output_for_readers_has_a_line_an_operator():
    made = report(*OPERATORS, unmeasured=LOST)
    text = terminal.render(made, Style())
    assert "\n✗ regressed           matmul: 2 regressed, 1 broken, 1 unchanged, 2 accepted or\n" in text
    assert "\n✗ could not measure   rope: 1 not measured\n" in text
    assert "\n✓ improved            softmax: 1 improved, 1 unchanged\n" in text
    assert "\n✗ regressed, excused  sort: 1 regressed, 1 accepted or report only\n" in text
    shown = markdown.render(made)
    assert "| <code>copy</code> | ✗ could not measure | 1 unchanged, 1 not measured |" in shown
    assert (
        "| <code>matmul</code> | ✗ regressed | 2 regressed, 1 broken, 1 unchanged, 2 accepted or report only |" in shown
    )
    assert shown.index("| operator |") < shown.index("| | verdict |")


def test_one_operator_needs_no_table_of_operators():
    assert "| operator |" not in markdown.render(report(finding()))
    assert "softmax: 1 regressed" in terminal.render(report(finding()), Style())


def test_what_a_stored_report_says_of_its_operators_is_not_believed():
    forged = OperatorVerdict("softmax", "pass", Verdict.IMPROVED, {Verdict.IMPROVED: 9})
    made = msgspec.structs.replace(report(finding()), operators=[forged])
    assert terminal.render(made, Style()) == terminal.render(report(finding()), Style())


def test_a_run_counts_its_operators(repo):
    repo.edit("impls/double/triton_row.py", "COST = 500", "COST = 600")
    (entry,) = repo.gate("--base", "main").report["operators"]
    assert entry["operator"] == "double" and entry["result"] == "regressed" and entry["verdict"] == "regressed"
    assert sum(entry["counts"].values()) == 2 * 7 and entry["excused"] == entry["unmeasured"] == 0


def test_processes_are_counted_in_words():
    made = msgspec.structs.replace(report(), steps=[Step("first", 5, 9.0, {}), Step("fresh", 1, 2.0, {})])
    assert "took 0.0 s: 5 processes 9.0 s; 1 fresh process 2.0 s" in terminal.render(made, Style())
