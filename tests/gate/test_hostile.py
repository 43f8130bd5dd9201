"""A report that a stranger wrote: whatever stands in any of its texts, no output is anything but text.

The report is filled by its types, so that a field added later is covered by being there.
"""

from __future__ import annotations

import argparse
import enum
import functools
import html
import json
import re
import types
import typing
import unicodedata
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate import annotations as ci
from groundspeed.gate import gate_command, junit, markdown, terminal
from groundspeed.gate.plain import plain, wrapped
from groundspeed.gate.report import EXIT_STATUS, Report, encode, read_report
from groundspeed.report.style import Style, width

CHARACTERS = "<>|&`*_[]()!#@\"'\\\r\n\x1b\x85\x9b%:,~$\x00\u2028\u202e\ud800\udcff\ufffe.w"
HOSTILE = st.text(st.characters(codec="utf-8") | st.sampled_from(list(CHARACTERS)), min_size=1, max_size=40)
PAYLOADS = (
    "</code>[click](https://evil.example) @maintainer <img src=x> | x\n\n# Approved",
    "<script>alert(1)</script> | `x` @someone [a](javascript:b) #1 ![i](http://e/)\n::set-env name=A::b\n<!-- -->",
    "see www.evil.example WWW.evil.example me@evil.example mailto:me@evil.example https://evil.example ftp://evil.example",
    "::error::forged",
    "x ::stop-commands::y \r\n  ::add-mask::z",
    "word " * 11 + "x" * 120 + "::error::" + "x" * 120,
    "##[error]forged ##vso[task.complete] ##teamcity[x]",
    "]]> &amp; &#0; <!-- --> <?x?> \x00\x0b\ufffe\ud800",
    "\x1b]0;title\x07 \x9b2J \x1b[1A",
    "a\\|b || ||| \\",
    "%0A::error::x %25 %3A",
    "</details>\n</summary>",
)


def hostile(test):
    """With every payload, and with what hypothesis thinks of."""
    for payload in PAYLOADS:
        test = example(payload)(test)
    return settings(deadline=None, max_examples=40)(given(HOSTILE)(test))


def filled(kind, text, number=1.5):
    """A value of a type with ``text`` for every string, and one item in every list and table."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return filled(next(one for one in arguments if one is not type(None)), text, number)
    if origin is typing.Literal:
        return arguments[0]
    if origin is list:
        return [filled(arguments[0], text, number)]
    if origin is dict:
        return {filled(arguments[0], text, number): filled(arguments[1], text, number)}
    if issubclass(kind, msgspec.Struct):
        return kind(**{name: filled(one, text, number) for name, one in typing.get_type_hints(kind).items()})
    if issubclass(kind, enum.Enum):
        return next(iter(kind))
    plain_values = {str: text, float: number, int: 7, bool: False}
    assert kind in plain_values, f"{kind}: say here what to fill it with"
    return plain_values[kind]


def reports(text, number=1.5):
    """Of all verdicts (accepted, failing, without numbers), of each result, of nothing, of two operators."""
    made = filled(Report, text, number)
    (finding,) = made.findings
    absent = {name: None for name, kind in typing.get_type_hints(type(finding)).items() if type(None) in _parts(kind)}
    found = [
        msgspec.structs.replace(finding, **{"verdict": verdict, **more})
        for verdict in Verdict
        for more in ({}, {"accepted": ""}, {**absent, "accepted": "", "metric": "status"})
    ]
    yield msgspec.structs.replace(made, findings=found)
    for result in EXIT_STATUS:
        yield msgspec.structs.replace(made, result=result, findings=[finding], unmeasured=[])
    yield msgspec.structs.replace(made, result="could not measure", findings=[], unmeasured=[])
    yield msgspec.structs.replace(made, findings=[finding, msgspec.structs.replace(finding, operator=f"{text}2")])


def _parts(kind):
    return typing.get_args(kind) or (kind,)


def renderings(text, render):
    """What each report reads as, beside what the same one reads as with an innocent text."""
    return zip(map(render, reports(text)), _innocent(render), strict=True)


@functools.cache
def _innocent(render):
    return tuple(map(render, reports("x")))


def test_every_text_of_a_report_is_filled():
    """The outputs' tests prove nothing of a field that keeps its default."""
    text = "\u0001 hostile"
    made = msgspec.to_builtins(filled(Report, text))
    assert json.dumps(made).count(json.dumps(text)[1:-1]) == _count_of_texts(Report)
    assert '""' not in json.dumps(made) and "[]" not in json.dumps(made)


def _count_of_texts(kind):
    if kind is str:
        return 1
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return sum(map(_count_of_texts, typing.get_type_hints(kind).values()))
    return 0 if typing.get_origin(kind) is typing.Literal else sum(map(_count_of_texts, typing.get_args(kind)))


@hostile
def test_markdown_has_the_shape_that_innocent_text_gives_it(text):
    for shown, innocent in renderings(text, _whole):
        assert _shape(shown) == _shape(innocent)


def _whole(report):
    return markdown.render(report, limit=10**9)


def _shape(text):
    """Markdown with what stands inside <code> taken out; asserts that it is inert there."""
    inside = r"(?:[A-Za-z0-9 .,=/+%±×→µ–-]|<!-- -->&#64;|&#(?!64;)\d+;)+"
    for body in re.findall("<code>(.*?)</code>", text):
        assert re.fullmatch(inside, body), body
        assert "www." not in body.lower()
    return re.sub(f"<code>{inside}</code>", "<code></code>", text)


@hostile
def test_markdown_that_is_cut_holds_no_tag_that_a_message_brought(text):
    for report in reports(text):
        cut = markdown.render(report, limit=3000)
        tags = _Tags()
        tags.feed(cut)
        assert len(cut) <= 3000
        assert {tag for tag, _ in tags.tags} <= {"code", "br", "details", "summary"}
        assert all(not attributes for _, attributes in tags.tags)
        assert set(tags.comments) <= {"groundspeed gate", ""}


class _Tags(HTMLParser):
    """Collects the tags and what stands between them."""

    def __init__(self):
        super().__init__()
        self.tags, self.comments = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, tuple(attributes)))

    def handle_comment(self, data):
        self.comments.append(data.strip())


@hostile
def test_code_is_on_one_line_and_keeps_the_text(text):
    body = markdown.code(text).removeprefix("<code>").removesuffix("</code>")
    assert html.unescape(body.replace("<!-- -->", "")) == (plain(text) or " ")


@hostile
def test_junit_is_xml_of_the_shape_that_innocent_text_gives_it(text):
    for shown, innocent in renderings(text, junit.render):
        tree = ElementTree.fromstring(shown)
        assert _skeleton(tree) == _skeleton(ElementTree.fromstring(innocent))
        values = [value for element in tree.iter() for value in [*element.attrib.values(), element.text or ""]]
        assert all(_harmless(line) for value in values for line in value.split("\n"))


def _skeleton(element):
    return element.tag, sorted(element.attrib), [_skeleton(child) for child in element]


@hostile
def test_github_reads_the_annotations_that_are_meant_and_no_other_command(text):
    for shown, innocent in renderings(text, ci.github):
        assert [_command(line) for line in _lines(shown)] == [_command(line) for line in _lines(innocent)]
        assert all(_seen(line) for line in shown.split("\n"))


def _lines(text):
    """As a runner reads them, which ends a line at each of these."""
    return re.split(r"\r\n|\r|\n", text)[:-1]


def _command(line):
    """What GitHub's runner makes of a line: the command and the names of its properties."""
    words, separator, _ = line.lstrip().removeprefix("::").partition("::")
    assert line.startswith("::") and separator
    name, _, properties = words.partition(" ")
    return name, [one.partition("=")[0] for one in properties.split(",")]


@hostile
def test_gitlab_issues_are_plain_text(text):
    for shown, innocent in renderings(text, ci.gitlab):
        issues = json.loads(shown)
        assert len(issues) == len(json.loads(innocent))
        for issue in issues:
            assert issue["description"] == plain(issue["description"])
            assert issue["location"]["path"] == (plain(text) or "pyproject.toml")
            assert re.fullmatch("[0-9a-f]{64}", issue["fingerprint"])
            assert issue["check_name"].removeprefix("groundspeed gate: ") in list(Verdict)


@hostile
def test_the_terminal_and_a_job_that_prints_there_cannot_be_driven(text):
    for report in reports(text):
        for line in terminal.render(report, Style(colour=False, width=80)).split("\n"):
            assert _harmless(line)


@hostile
def test_a_line_that_is_wrapped_is_no_command_and_stays_within_its_width(text):
    for length, indent in product((12, 20, 79), ("", "    ", "note: ")):
        lines = wrapped(text, length, indent)
        assert all(map(_harmless, lines))
        assert all(len(line) <= length for line in lines)


@hostile
def test_plain_text_is_one_line_without_what_cannot_be_seen(text):
    shown = plain(text)
    assert len(shown.splitlines()) <= 1 and _harmless(shown)
    assert [c for c in shown if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "∷error::x"),
        (" ::error::x", "∷error::x"),
        ("std::vector ::x", "std::vector ::x"),
        ("a ##[error]x", "a # #[error]x"),
        ("##vso[x] ### [y]", "# #vso[x] ### [y]"),
        ("a\tb\r\nc\x1b[2J\u202e", "a b c�[2J�"),
    ],
)
def test_what_a_runner_would_obey_reads_the_same_and_is_no_command(text, shown):
    assert plain(text) == shown


def _seen(line):
    return not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") for c in line)


def _harmless(line):
    """Drives neither a terminal nor a CI runner: GitHub's takes "::" behind blanks and "##[" anywhere for commands."""
    return _seen(line) and not line.lstrip().startswith("::") and not re.search(r"##\w*\[", line)


@hostile
def test_json_can_be_written_and_read_whatever_the_texts_hold(text):
    for report in reports(text):
        assert len(json.loads(encode(report))["findings"]) == len(report.findings)


@hostile
def test_a_report_with_a_metric_of_another_name_is_read_and_one_with_any_text_is_not(text):
    made = filled(Report, text)
    document = json.loads(encode(made))
    if re.fullmatch("[a-z][a-z0-9_]{0,63}", text):
        return
    with pytest.raises(msgspec.ValidationError, match=r"findings\[0\]\.metric"):
        msgspec.json.decode(json.dumps(document), type=Report)
    document["findings"][0]["metric"] = "l2_misses"
    read = msgspec.json.decode(json.dumps(document), type=Report)
    assert read.findings[0].metric == "l2_misses"
    assert "<code>l2&#95;misses</code>" in markdown.render(read, limit=10**9)


@pytest.mark.parametrize(
    "metric", ["", "device_cold\n", "Device", "a b", "a-b", "1a", "a" * 65, "é", "a\u0301", PAYLOADS[0]]
)
def test_the_command_refuses_a_metric_that_is_no_name(tmp_path, metric):
    document = json.loads(encode(filled(Report, "x")))
    document["findings"][0]["metric"] = metric
    path, out = tmp_path / "evil.json", tmp_path / "evil.md"
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"evil\.json: .*findings\[0\]\.metric"):
        _gate("--report", str(path), "--markdown", str(out))
    assert not out.exists()


@pytest.mark.parametrize("place", [("result",), ("findings", 0, "verdict"), ("operators", 0, "verdict")])
@pytest.mark.parametrize("text", [*PAYLOADS, "harmless"])
def test_an_unknown_verdict_is_refused_and_its_text_stays_text(tmp_path, place, text):
    """Nothing says whether it fails."""
    document = json.loads(encode(filled(Report, "x")))
    *above, last = place
    entry = document
    for step in above:
        entry = entry[step]
    entry[last] = text.encode(errors="replace").decode()
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"Invalid enum value") as caught:
        read_report(path)
    assert _harmless(str(caught.value))


@pytest.mark.parametrize("number", [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -1.0, 0.0, 1e300])
def test_no_number_is_too_large_to_show(number):
    for report in reports("x", number):
        for render in (markdown.render, junit.render, ci.github, ci.gitlab, encode):
            assert render(report)
        assert all(width(line) <= 80 for line in terminal.render(report, Style(width=80)).split("\n"))


def _gate(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", default=None)
    gate_command.add_arguments(parser)
    return gate_command.run(parser.parse_args(words))
