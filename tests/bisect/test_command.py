"""The command over a scratch repository, the engine replaced by one that reads costs from the files."""

from __future__ import annotations

import shlex

import pytest

from groundspeed.cli import main
from groundspeed.commands.bisect import parse_threshold
from groundspeed.errors import UserError
from tests.bisect.conftest import ROW

BROKEN = 'FAIL = ["error", "no such luck"]'


@pytest.fixture
def history(repo):
    """Twelve commits, the eighth of which plants a slowdown of 12 %; returns their hashes, oldest first."""
    costs = [500, 501, 499, 500, 502, 500, 499, 560, 561, 559, 560, 562]
    found = [repo.git("rev-parse", "HEAD")]
    for number, cost in enumerate(costs[1:], 1):
        write(repo, cost, number)
        found.append(repo.commit(f"Change number {number}"))
    return found


def write(repo, cost, number, more=""):
    repo.write(ROW, f'"""A row."""\nfrom .. import _shared\nCOST = {cost}\nNUMBER = {number}\n{more}\n')


def test_the_planted_commit_is_found_with_its_size(repo, history, bisected):
    result = bisected("double/triton_row", history[0], history[-1])
    assert result.status == 0 and result.first_bad == history[7]
    assert "Change number 7 (A Tester, " in result.output
    assert "+12." in result.output and f"over {history[0][:10]}" in result.output
    assert len(result.steps) == 4
    assert all(line.count("%") == 2 for line in result.steps), "a step without its ratio and interval"


def test_the_command_it_ends_with_finds_it_again(repo, history, bisected):
    output = bisected("double/triton_row", history[0], history[-1], "--threshold", "5%", "--seed", "3").output
    (line,) = [line for line in output.splitlines() if "again:" in line]
    words = shlex.split(line.partition("again: ")[2])
    assert words[:5] == ["groundspeed", "bisect", "double/triton_row", "float32", "N=64"]
    assert words[5:7] == [history[6][:12], history[7][:12]]
    again = bisected(*words[2:])
    assert again.status == 0 and again.first_bad == history[7] and not again.steps


def test_good_is_on_one_side_of_every_comparison(repo, history, bisected):
    result = bisected("double/triton_row", history[0], history[-1])
    bases = {request.pairs[0].base.tree.parent.name for request in result.engine.requests}
    assert bases == {history[0]}
    assert {request.spec_tree.name for request in result.engine.requests} == {"specs"}


def test_todays_spec_is_used_whatever_a_commit_has(repo, history, bisected):
    repo.edit("impls/double/spec.py", '{"N": 64}', '{"N": 8192}')
    repo.edit("impls/double/spec.py", 'case("float32", N=64)', 'case("float32", N=8192)')
    result = bisected("double/triton_row", history[0], history[-1])
    assert result.status == 0
    assert {case.shape_label for r in result.engine.requests for p in r.pairs for case in p.cases} == {"N=8192"}


def test_broken_commits_beside_it_make_the_answer_a_range(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    found = []
    for number in range(1, 10):
        write(repo, 500 if number < 5 else 600, number, BROKEN if number in (4, 5) else "")
        found.append(repo.commit(f"Change number {number}"))
    result = bisected("double/triton_row", good, found[-1])
    assert result.status == 0
    assert f"the first bad commit is {found[5]} or one before it that cannot be told" in result.output
    assert found[3][:10] in result.output and found[4][:10] in result.output
    assert "passed over: broken: failed (error): no such luck" in result.output


def test_a_commit_without_the_implementation_is_passed_over(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    for number in (1, 2):
        write(repo, 500, number)
        repo.commit()
    (repo.root / ROW).unlink()
    repo.commit("Gone for a while")
    write(repo, 600, 4)
    back = repo.commit("Back, and slower")
    result = bisected("double/triton_row", good, back)
    assert result.status == 0 and "it has no such implementation" in result.output


def test_ambiguous_commits_are_passed_over(repo, bisected):
    """Processes that disagree convict nobody: 30 % of scatter between them, and a shift within it."""
    good = repo.git("rev-parse", "HEAD")
    found = []
    for number in range(1, 8):
        write(repo, 500 if number < 4 else 650, number, "JITTER = 0.3" if number == 4 else "")
        found.append(repo.commit(f"Change number {number}"))
    result = bisected("double/triton_row", good, found[-1])
    assert result.status == 0
    assert "passed over" in result.output and "ambiguous: " in result.output
    assert f"the first bad commit is {found[4]} or one before it" in result.output


def test_a_change_that_came_back_is_not_measured_twice(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    original = (repo.root / ROW).read_text()
    write(repo, 505, 1)
    repo.commit("Another way")
    repo.write(ROW, original)
    back = repo.commit("And back")
    write(repo, 600, 3)
    slow = repo.commit("Slower")
    result = bisected("double/triton_row", good, slow)
    assert result.first_bad == slow and "the same code as the good end" in result.output
    assert all(r.pairs[0].head.tree.parent.name != back for r in result.engine.requests)


def test_an_older_name_is_compared_with_todays(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    write(repo, 600, 1)
    slow = repo.commit("Slower")
    repo.git("mv", ROW, "impls/double/triton_line.py")
    repo.edit("impls/double/triton_line.py", "NUMBER = 1", "NUMBER = 2")
    renamed = repo.commit("Rename it")
    result = bisected("double/triton_line", good, renamed)
    assert result.status == 0 and result.first_bad == slow


def test_of_several_cases_the_worst_is_followed(repo, history, bisected):
    repo.edit(
        "impls/double/spec.py",
        '"small": (case("float32", N=64),)',
        '"small": (case("float32", N=64), case("float32", N=4096))',
    )
    result = bisected("double/triton_row", history[0], history[-1])
    assert result.output.count("bad end ") == 2
    assert {len(r.pairs[0].cases) for r in result.engine.requests[2:]} == {1}
    one = bisected("double/triton_row", "N=4096", history[0], history[-1])
    assert "float32 N=4096: +1" in one.output and one.output.count("bad end ") == 1


def test_a_merge_says_how_to_look_inside(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "side")
    write(repo, 500, 1)
    repo.commit("Harmless")
    write(repo, 600, 2)
    slow = repo.commit("Slower")
    repo.git("checkout", "-q", "topic")
    repo.commit("Meanwhile")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge it", "side")
    result = bisected("double/triton_row", good, "HEAD")
    assert result.first_bad == repo.git("rev-parse", "HEAD")
    (line,) = [line for line in result.output.splitlines() if "it is a merge" in line]
    inside = bisected(*shlex.split(line.partition("groundspeed bisect ")[2]))
    assert inside.first_bad == slow


@pytest.mark.parametrize(
    ("metric", "before", "after", "said"),
    [
        ("peak_memory", "PEAK = 1000000", "PEAK = 2000000", "peak memory"),
        ("error", "ERROR = 1e-6", "ERROR = 3e-6", "error"),
    ],
)
def test_other_metrics_are_searched_alike(repo, bisected, metric, before, after, said):
    write(repo, 500, 0, before)
    good = repo.commit()
    for number in (1, 2, 3, 4):
        write(repo, 500, number, before if number < 3 else after)
        repo.commit(f"Change number {number}")
    result = bisected("double/triton_row", good, "HEAD", "--metric", metric)
    assert result.status == 0 and said in result.output
    assert result.first_bad == repo.git("rev-parse", "HEAD~1")
    assert bisected("double/triton_row", good, "HEAD").status == 1


def test_ends_that_do_not_differ_are_status_1(repo, history, bisected):
    result = bisected("double/triton_row", history[0], history[6])
    assert result.status == 1 and not result.steps
    assert "good and bad do not differ in device time, cold, measured on float32 N=64" in result.output


def test_nothing_changed_is_status_1_without_measuring(repo, bisected):
    good = repo.git("rev-parse", "HEAD")
    repo.write("README.md", "words\n")
    repo.commit()
    result = bisected("double/triton_row", good, "HEAD")
    assert result.status == 1 and not result.engine.requests
    assert "no commit between them changes double/triton_row" in result.output


def test_a_faster_end_is_status_1_and_says_so(repo, history, bisected):
    write(repo, 300, 99)
    repo.commit("Faster")
    result = bisected("double/triton_row", history[0], "HEAD")
    assert result.status == 1 and "good  -40" in result.output


def test_an_end_that_cannot_run_is_status_2(repo, history, bisected):
    write(repo, 500, 50, BROKEN)
    broken = repo.commit("Break it")
    result = bisected("double/triton_row", history[0], broken)
    assert result.status == 2
    assert "good and bad cannot be told apart: float32 N=64: broken: failed (error): no such luck" in result.output


def test_a_lost_device_is_status_2_and_no_answer(repo, history, bisected, fake_engine):
    result = bisected("double/triton_row", history[0], history[-1], engine=fake_engine(lose_after=2))
    assert result.status == 2 and "the GPU has fallen off the bus" in result.output


def test_two_runners_mixed_are_status_2(repo, history, bisected, fake_engine):
    result = bisected("double/triton_row", history[0], history[-1], engine=fake_engine(mix_at=3))
    assert result.status == 2 and "two runners were mixed" in result.output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("double/triton_row", "nowhere", "HEAD"), "no such commit"),
        (("double/triton_row", "HEAD~1", "topik"), "did you mean 'topic'?"),
        (("double/triton_row", "", "HEAD"), "type: groundspeed bisect double/triton_row GOOD BAD"),
        (("double/triton_row", "HEAD", "HEAD"), "one commit"),
        (("double/triton_row", "HEAD~1", "HEAD", "--threshold", "900%"), "above 0 and up to 200%"),
        (("double", "HEAD~1", "HEAD"), "names no implementation"),
        (("double/triton_rows", "HEAD~1", "HEAD"), "did you mean 'triton_row'"),
        (("triple/triton_row", "HEAD~1", "HEAD"), "unknown operator 'triple'"),
        (("double/triton_row", "N=65", "HEAD~1", "HEAD"), "no case 'N=65'"),
        (("double/triton_row", "HEAD~1", "HEAD", "--metric", "device_colt"), "did you mean 'device_cold'"),
        (("double/triton_row", "HEAD~1", "HEAD", "--threshold", "3"), "expected a share"),
    ],
)
def test_wrong_use_is_one_line_and_measures_nothing(repo, history, bisected, typed, said):
    result = bisected(*typed)
    assert result.status == 2 and said in result.output and "\n" not in result.output
    assert not result.engine.requests


def test_the_command_is_known(repo, history, capsys):
    assert main(["--project", str(repo.root), "bisect", "double/nothing", history[0], history[-1]]) == 2
    assert "BAD" in capsys.readouterr().err


def test_a_threshold_is_a_share_or_a_percentage():
    assert parse_threshold("3%") == parse_threshold("0.03") == parse_threshold(" 3 %") == pytest.approx(0.03)
    for wrong in ("3", "0", "-1%", "many", "nan", "inf"):
        with pytest.raises(UserError, match="expected a share"):
            parse_threshold(wrong)


def test_the_policys_override_gives_way_to_a_typed_threshold(repo, history, bisected):
    repo.write("pyproject.toml", '[[tool.groundspeed.gate.override]]\noperator = "double"\nthreshold = 0.5\n')
    assert bisected("double/triton_row", history[0], history[-1]).status == 1
    assert bisected("double/triton_row", history[0], history[-1], "--threshold", "5%").status == 0
