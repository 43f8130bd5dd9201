"""What is run how often, and what is concluded from what the tool and the process say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from groundspeed.report.style import PLAIN
from groundspeed.sanitizer import sweep
from groundspeed.sanitizer.log import Report, parse_log
from groundspeed.sanitizer.protocol import Began, Declined, Event, Finished, Raised, Ran, Request
from groundspeed.sanitizer.report import summary_line, verdict_lines
from groundspeed.sanitizer.sweep import Finding, Verdict, examine, exit_status
from groundspeed.sanitizer.tool import Watched
from groundspeed.tree import Tree
from tests.cli import toy_project
from tests.sanitizer import logs

CU = "// Adds x to itself.\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = toy_project.make(tmp_path_factory.mktemp("toy") / "p", double={})
    (root / "impls" / "double" / "cuda_add.cu").write_text(CU)
    return Tree(root / "impls")


class Script:
    """Stands for the tool: answers by the labels of the cases that it is asked to run."""

    def __init__(self, whole: Watched, alone: dict[str, str] | None = None) -> None:
        self.whole, self.alone, self.asked = whole, alone or {}, list[tuple[str, ...]]()
        self.requests = list[Request]()

    def __call__(self, request: Request) -> Watched:
        labels = tuple(case.label for case in request.case_list())
        self.asked.append(labels)
        self.requests.append(request)
        if len(labels) > 1:
            return self.whole
        (label,) = labels
        return Watched(parse_log(self.alone.get(label, logs.CLEAN)), (Began(label), Ran(label), Finished()))


def ended(*events, log: str = logs.CLEAN, ended: str = "") -> Watched:
    return Watched(parse_log(log), events, ended)


def verdict_of(tree: Tree, script: Script, check: str = "memcheck", pool=None) -> Verdict:
    one = tree.implementation("double", "cuda_add")
    return examine(tree, tree.spec("double"), one, check, script, pool)


BOTH = (Began("a"), Ran("a"), Began("b"), Ran("b"), Finished())


def test_what_is_clean_runs_once_with_every_check_case(tree):
    script = Script(ended(*BOTH))
    found = verdict_of(tree, script)
    assert found.state == "clean" and found.ran == ("a", "b") and found.findings == ()
    assert [len(labels) for labels in script.asked] == [6]
    assert exit_status([found]) == 0


def test_what_is_not_clean_runs_again_case_by_case_to_name_them(tree):
    other = logs.MEMCHECK.replace("past_end", "other").replace("39 errors", "2 errors")
    alone = {"float32 N=12345": logs.MEMCHECK, "float16 N=12345": logs.MEMCHECK, "float16 N=1": other}
    script = Script(ended(Began("float32 N=12345"), log=logs.MEMCHECK), alone)
    with ThreadPoolExecutor(4) as pool:
        found = verdict_of(tree, script, pool=pool)
    assert sorted(len(labels) for labels in script.asked) == [1] * 6 + [6]
    first, second = found.findings
    assert first.report.place == "cuda_past_end.cu:21" and first.cases == ("float32 N=12345", "float16 N=12345")
    assert second.report.kernel.startswith("void <unnamed>::other<float>") and second.cases == ("float16 N=1",)
    assert (found.state, found.errors, found.warnings) == ("errors", 39 + 39 + 2, 0)
    assert exit_status([found]) == 1


def test_an_error_that_no_case_alone_brings_about_is_kept(tree):
    found = verdict_of(tree, Script(ended(Began("x"), log=logs.MEMCHECK)))
    assert [finding.cases for finding in found.findings] == [()] and found.errors == 39
    assert "of no case alone" in "\n".join(verdict_lines(found, 20, PLAIN))


@pytest.mark.parametrize(
    ("seen", "state", "reason"),
    [
        (ended(Began("a"), ended="no end after 600 s"), "failed", "no end after 600 s, in a"),
        (ended(Began("a"), Raised("a", "RuntimeError: rows: invalid argument")), "failed", "a: RuntimeError: rows"),
        (ended(Raised("", "BuildError: x.cu: nvcc: error")), "failed", "loading: BuildError"),
        (ended(Began("a"), log=logs.CRASHED), "failed", "the process ended early, in a"),
        (ended(log=logs.CRASHED), "failed", "the process ended early, in loading"),
        (ended(Began("a"), Declined("a", "no float16"), Finished()), "skipped", "no float16"),
        (ended(Began("a"), Raised("a", "error 999"), log=logs.NOT_SUPPORTED), "unknown", "Error: Device not supported"),
        (ended(*BOTH, log=logs.NOT_TRACKED), "unknown", "Internal Sanitizer Error"),
        (ended(*BOTH, log=""), "unknown", "the tool wrote no summary"),
        (Watched(parse_log(""), (), said="unrecognised option"), "unknown", "the tool did not run it: unrecognised"),
        (
            Watched(parse_log(logs.CLEAN), (Began("a"),), said="Killed"),
            "failed",
            "the process ended early, in a: Killed",
        ),
    ],
)
def test_nothing_that_was_not_watched_to_its_end_is_clean(tree, seen: Watched, state: str, reason: str):
    found = verdict_of(tree, Script(seen))
    assert found.state == state and found.reason.startswith(reason)
    assert exit_status([found]) == {"failed": 1, "unknown": 2, "skipped": 2}[state]
    clean = verdict_of(tree, Script(ended(*BOTH)))
    assert exit_status([found, clean]) == {"failed": 1, "unknown": 2, "skipped": 0}[state]


def test_racecheck_leaves_out_what_is_over_its_limit(tree, monkeypatch):
    monkeypatch.setattr(sweep, "RACECHECK_BYTES", 1000)
    script = Script(ended(*BOTH, log=logs.CLEAN_RACECHECK))
    found = verdict_of(tree, script, "racecheck")
    assert found.state == "clean" and found.left_out == 2
    assert [label for label in script.asked[0] if "12345" in label] == []
    assert "2 over the limit" in verdict_lines(found, 20, PLAIN)[0]
    assert len(Script(ended(*BOTH)).asked) == 0 and verdict_of(tree, Script(ended(*BOTH))).left_out == 0
    assert found.smallest == "" and [request.first_only for request in script.requests] == [False]


class Takes:
    """Stands for the tool and an implementation that takes cases with these words in their labels."""

    def __init__(self, *words: str, log: str = logs.CLEAN_RACECHECK, ends: str = "") -> None:
        self.words, self.log, self.ends, self.requests = words, log, ends, list[Request]()

    def __call__(self, request: Request) -> Watched:
        self.requests.append(request)
        events: list[Event] = []
        for case in request.case_list():
            events.append(Began(case.label))
            if not any(word in case.label for word in self.words):
                events.append(Declined(case.label, "too short"))
                continue
            if self.ends:
                return ended(*events, log="", ended=self.ends)
            events.append(Ran(case.label))
            if request.first_only:
                break
        ran = any(isinstance(event, Ran) for event in events)
        return ended(*events, Finished(), log=self.log if ran else logs.CLEAN_RACECHECK)


def test_where_every_case_that_is_taken_is_over_the_limit_the_smallest_is_run_all_the_same(tree, monkeypatch):
    """Else it would be skipped, and never looked at for races."""
    monkeypatch.setattr(sweep, "RACECHECK_BYTES", 1000)
    takes = Takes("12345")
    found = verdict_of(tree, takes, "racecheck")
    assert (found.state, found.left_out) == ("clean", 1)
    assert found.ran == (found.smallest,) == ("float16 N=12345",)  # half of float32's bytes
    within, over = takes.requests
    assert not within.first_only and over.first_only and len(within.cases) == 4
    assert [case.label for case in over.case_list()] == ["float16 N=12345", "float32 N=12345"]
    first, second, *rest = verdict_lines(found, 20, PLAIN)
    assert "clean  1 case, 1 over the limit" in first and not rest
    assert second == "    takes no case within the limit: of those over it float16 N=12345 was run"
    assert exit_status([found]) == 0


def test_where_no_case_is_within_the_limit_the_smallest_is_looked_for_at_once(tree, monkeypatch):
    monkeypatch.setattr(sweep, "is_over", lambda spec, case, check: True)
    takes = Takes("float32 N=12345")
    found = verdict_of(tree, takes, "racecheck")
    assert (found.state, found.smallest, found.left_out) == ("clean", "float32 N=12345", 0)
    assert [len(request.cases) for request in takes.requests] == [6]


def test_a_race_in_the_smallest_case_is_found_by_its_name(tree, monkeypatch):
    monkeypatch.setattr(sweep, "RACECHECK_BYTES", 1000)
    takes = Takes("12345", log=logs.RACECHECK)
    found = verdict_of(tree, takes, "racecheck")
    assert found.state == "errors" and exit_status([found]) == 1 and len(takes.requests) == 2
    assert {finding.cases for finding in found.findings} == {("float16 N=12345",)}
    assert (found.ran, found.smallest, found.left_out) == (("float16 N=12345",), "float16 N=12345", 1)


def test_one_that_takes_nothing_at_all_is_skipped_with_its_own_reason(tree, monkeypatch):
    monkeypatch.setattr(sweep, "RACECHECK_BYTES", 1000)
    found = verdict_of(tree, Takes("nothing"), "racecheck")
    assert (found.state, found.reason, found.left_out, found.smallest) == ("skipped", "too short", 0, "")


def test_a_case_over_the_limit_that_does_not_end_is_not_called_failed(tree, monkeypatch):
    """It is large: the tool may only be slow."""
    monkeypatch.setattr(sweep, "RACECHECK_BYTES", 1000)
    found = verdict_of(tree, Takes("12345", ends="no end after 600 s"), "racecheck")
    assert (found.state, found.reason) == ("unknown", "no end after 600 s, in float16 N=12345")
    assert exit_status([found]) == 2


def test_lines_say_kernel_place_and_cases_in_80_columns(tree):
    one = tree.implementation("double", "cuda_add")
    report = Report("Invalid __global__ write of size 4 bytes", "void <unnamed>::rows<float, (int)4>(long)", "a.cu:7")
    cases = tuple(f"bfloat16 M=17000,N=40,K={number}" for number in range(7))
    found = Verdict(one, "errors", errors=3, warnings=1, findings=(Finding(report, cases), Finding(report, ())))
    lines = verdict_lines(found, len(found.label), PLAIN)
    assert lines[0] == "double/cuda_add  3 errors and 1 warning"
    assert lines[1].strip() == "Invalid __global__ write of size 4 bytes"
    assert lines[2].strip() == "in rows<float,4>, a.cu:7"
    assert "and 3 more cases" in "".join(lines)
    assert max(map(len, lines)) <= 80
    assert summary_line([found], "memcheck", 95.0, PLAIN) == (
        "memcheck: 1 implementation, 0 clean, 1 with errors; 1 min 35 s"
    )
