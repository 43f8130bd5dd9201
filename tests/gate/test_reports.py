"""What the outputs do with hostile names and messages, and that they say what was found."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate import annotations as ci
from groundspeed.gate import junit, markdown, terminal
from groundspeed.gate.report import Finding, Report, Unmeasured, encode, read_report, schema
from groundspeed.gate.words import plain
from groundspeed.report.style import Style, width

HOSTILE = st.text(
    st.characters(codec="utf-8") | st.sampled_from(list("<>|&`*_[]()!#@\"'\\\r\n\x1b%:,~$\x00\u202e")), max_size=40
)
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


class Tags(HTMLParser):
    """Collects the tags and what stands between them."""

    def __init__(self):
        super().__init__()
        self.tags, self.comments = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, tuple(attributes)))

    def handle_comment(self, data):
        self.comments.append(data.strip())


@given(HOSTILE)
def test_code_is_inert_on_one_line_and_keeps_the_text(text):
    inert = markdown.code(text)
    body = inert.removeprefix("<code>").removesuffix("</code>")
    assert re.fullmatch(r"(?:[A-Za-z0-9 .,=/+%±×→µ–-]|&#\d+;)+", body)
    assert html.unescape(body) == (plain(text) or " ")


@given(HOSTILE)
def test_plain_text_is_one_line_without_what_cannot_be_seen(text):
    shown = plain(text)
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") for c in shown)
    assert [c for c in shown if c.isalnum()] == [c for c in text if c.isalnum()]


@given(HOSTILE, HOSTILE, HOSTILE)
def test_markdown_holds_no_tag_that_a_message_brought(name, reason, summary):
    made = report(
        finding(implementation=name, reason=reason, shape=summary, cause=reason, accepted=name, reproduce=summary),
        unmeasured=[Unmeasured(name, reason, summary, reason)],
        remarks=[summary],
    )
    made = msgspec.structs.replace(made, summary=summary, base_label=name, machine=reason)
    tags = Tags()
    tags.feed(markdown.render(made))
    assert {tag for tag, _ in tags.tags} <= {"code", "br", "details", "summary"}
    assert all(not attributes for _, attributes in tags.tags)
    assert tags.comments == ["groundspeed gate"]


def test_a_markdown_table_keeps_its_columns():
    lines = markdown.render(report(finding(implementation=PAYLOAD, reason=PAYLOAD))).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows and all(row.count("|") in (7, 8, 11) for row in rows)
    assert "@" not in "".join(lines) and "javascript:b" not in "".join(lines)


def test_markdown_stays_below_what_a_comment_may_hold_and_says_that_it_was_cut():
    text = markdown.render(report(*[finding(shape=f"M={i}") for i in range(3000)]))
    assert len(text) <= markdown.LIMIT and "cut here" in text
    assert text.count("<details>") == text.count("</details>")


@given(HOSTILE, HOSTILE)
def test_junit_is_xml_whatever_the_messages_hold(name, reason):
    made = report(
        finding(implementation=name, reason=reason),
        finding(verdict=Verdict.AMBIGUOUS, reason=reason),
        finding(verdict=Verdict.NEW, metric="status", reason=reason),
        unmeasured=[Unmeasured(name, reason, name, reason)],
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


@given(HOSTILE, HOSTILE)
def test_a_github_annotation_stays_on_its_line(name, reason):
    text = ci.github(report(finding(implementation=name, reason=reason, file=name)))
    assert text.count("\n") == 1 and text.startswith("::error ")
    assert "\r" not in text


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


@given(HOSTILE, HOSTILE)
def test_the_terminal_cannot_be_driven(name, reason):
    made = report(
        finding(implementation=name, reason=reason, reproduce=""), unmeasured=[Unmeasured(name, "", "", reason)]
    )
    for line in terminal.render(made, Style(colour=False, width=80)).split("\n"):
        assert width(line) <= 80
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)
        assert not line.startswith("::")


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
    for struct in (Report, Finding, Unmeasured):
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
