"""Results in a branch of their own, in real repositories: pushed, pulled, read, by several at once, and refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dashboard import triage
from dashboard.store import open_store
from groundspeed.cli import main
from groundspeed.locations import mirror
from groundspeed.locations.branch import BranchShelf
from groundspeed.locations.mirror import mirror_of, synchronised
from groundspeed.locations.place import Branch
from groundspeed.records import find_records
from tests.store import make
from tests.store.locations import IDENTITY, git, groundspeed


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository with one commit of code on main; the cache of mirrors is the test's own."""
    for name, value in {**IDENTITY, "HOME": str(tmp_path), "GROUNDSPEED_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    bare = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    _clone(bare, "first")
    git(tmp_path / "first", "push", "-q", "origin", "HEAD:main")
    return bare


def _clone(origin: Path, name: str) -> Path:
    """A checkout of groundspeed's shape, with results that git does not know."""
    folder = origin.parent / name
    git(origin.parent, "clone", "-q", str(origin), name)
    if not (folder / "asv.conf.json").exists():
        (folder / "asv.conf.json").write_text("{}")
        (folder / "impls").mkdir()
        (folder / "impls" / ".keep").write_text("")
        (folder / ".gitignore").write_text("/results/\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "Begin")
    return folder


def _record(checkout: Path, number: int) -> Path:
    run_id = f"2026010{number}T000000Z-x"
    return make.record(checkout / "results", make.measurement(time=100.0 + number), run_id=run_id)


def _push(checkout: Path, place: str = "git:results") -> int:
    return main(["--project", str(checkout), "store", "push", place])


def _pull(checkout: Path, place: str = "git:results") -> int:
    return main(["--project", str(checkout), "store", "pull", place])


def _runs(checkout: Path) -> list[str]:
    return sorted(path.parent.name for path in find_records(checkout / "results"))


def test_a_branch_begins_with_the_first_push_and_shares_nothing_with_the_code(origin: Path, capsys) -> None:
    first, second = origin.parent / "first", _clone(origin, "second")
    assert main(["--project", str(second), "store", "verify", "--results", "git:results"]) == 2
    said = capsys.readouterr().err
    assert "git:results: no such branch; the first groundspeed store push git:results makes it" in said
    _record(first, 1)
    assert _push(first) == 0
    assert capsys.readouterr().out == "git:results: 1 file added, 0 there already\n"
    assert _pull(second) == 0 and _runs(second) == _runs(first)
    listed = git(origin, "ls-tree", "-r", "--name-only", "results").split()
    assert listed == ["nvidia-h200/records/20260101T000000Z-x/softmax.jsonl.gz"]
    bases = subprocess.run(["git", "-C", str(origin), "merge-base", "main", "results"], capture_output=True)
    assert bases.returncode == 1 and bases.stdout == b""
    commits = git(origin, "rev-list", "results").split()
    assert _push(first) == 0 and _push(second) == 0
    assert git(origin, "rev-list", "results").split() == commits, "nothing new, no commit"
    assert git(first, "status", "--porcelain") == "" == git(second, "status", "--porcelain")
    assert not git(first, "for-each-ref", "refs/groundspeed/made").strip()


@pytest.mark.parametrize("place", ["git:results", "git:{origin}#results"])
def test_readers_take_a_branch_of_the_checkout_or_of_any_repository(origin: Path, place: str, capsys) -> None:
    first, second = origin.parent / "first", _clone(origin, "second")
    place = place.format(origin=origin)
    for number in (1, 2, 3):
        _record(first, number)
    assert _push(first, place) == 0
    readers = (["store", "verify"], ["history", "softmax"], ["best", "softmax"], ["table", "--machine", "nvidia-h200"])
    for typed in readers:
        assert main(["--project", str(second), *typed, "--results", place]) == 0, capsys.readouterr()
    assert "3 record files under" in capsys.readouterr().out
    _record(first, 4)
    assert _push(first, place) == 0
    capsys.readouterr()
    assert main(["--project", str(second), "store", "verify", "--results", place]) == 0
    assert "4 record files under" in capsys.readouterr().out
    assert main(["--project", str(second), "store", "prune", "--keep", "3", "--yes", "--results", place]) == 0
    assert git(origin, "ls-tree", "-r", "--name-only", "results").count("softmax") == 3


def test_runners_that_push_at_once_lose_nothing_and_count_nothing_twice(origin: Path) -> None:
    """Four clones in processes of their own; each has a run of its own, one that all have, and notes."""
    clones = [_clone(origin, f"clone{number}") for number in range(4)]
    for number, clone in enumerate(clones):
        _record(clone, number + 1)
        _record(clone, 9)
        triage.append(clone / "results", f"{number:016x}", "acknowledged", "", f"person {number}")
    pushing = [groundspeed(clone, "store", "push", "git:results") for clone in clones]
    for process in pushing:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    last = _clone(origin, "last")
    assert _pull(last) == 0
    assert _runs(last) == [f"2026010{number}T000000Z-x" for number in (1, 2, 3, 4, 9)]
    events, problems = triage.read(last / "results")
    assert sorted(event.who for event in events) == [f"person {number}" for number in range(4)] and not problems
    assert open_store(last / "results").snapshot.rows == 5


def test_a_push_that_is_overtaken_begins_again_on_top(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time between looking and pushing somebody else pushes, three times over."""
    first, second = origin.parent / "first", _clone(origin, "second")
    _record(first, 1)
    inner, left = BranchShelf._publish, [3]

    def publish(self: BranchShelf, made: str) -> bool:
        if left[0] and self._repository == first:
            left[0] -= 1
            _record(second, 5 + left[0])
            assert _push(second) == 0
        return inner(self, made)

    monkeypatch.setattr(BranchShelf, "_publish", publish)
    assert _push(first) == 0 and left == [0]
    assert _pull(second) == 0
    assert _runs(second) == [f"2026010{number}T000000Z-x" for number in (1, 5, 6, 7)]
    assert len(git(origin, "rev-list", "results").split()) == 4


def test_an_interrupted_push_leaves_nothing_half_done(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = origin.parent / "first"
    _record(first, 1)
    inner = BranchShelf._publish

    def interrupted(self: BranchShelf, made: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(BranchShelf, "_publish", interrupted)
    assert _push(first) == 130
    assert "results" not in git(origin, "branch") and not git(first, "for-each-ref", "refs/groundspeed/made").strip()
    monkeypatch.setattr(BranchShelf, "_publish", inner)
    assert _push(first) == 0 and "results" in git(origin, "branch")


def test_a_version_that_the_branch_once_had_does_not_come_back(origin: Path) -> None:
    """A checkout that was pulled long ago brings no old machine.json with its new run."""
    first, second = origin.parent / "first", _clone(origin, "second")
    _record(first, 1)
    described = first / "results" / "nvidia-h200" / "machine.json"
    described.write_text('{"machine": "nvidia-h200", "driver": "580"}')
    assert _push(first) == 0 and _pull(second) == 0
    described.write_text('{"machine": "nvidia-h200", "driver": "590"}')
    assert _push(first) == 0
    _record(second, 2)
    assert _push(second) == 0
    assert '"590"' in git(origin, "show", "results:nvidia-h200/machine.json")
    assert _pull(second) == 0
    assert '"590"' in (second / "results" / "nvidia-h200" / "machine.json").read_text()


def test_a_dashboard_notes_in_a_branch(origin: Path) -> None:
    first = origin.parent / "first"
    _record(first, 1)
    assert _push(first) == 0
    place = Branch("results")
    synchronised(place, first)
    folder = mirror_of(place, first)
    triage.append(folder, "b" * 16, "noise", "a busy host", "Bob")
    synchronised(place, first)
    assert '"Bob"' in git(origin, "show", "results:triage.jsonl")
    assert _pull(first) == 0 and [event.who for event in triage.read(first / "results")[0]] == ["Bob"]


def test_a_repository_without_a_remote_keeps_the_branch_itself(origin: Path, capsys) -> None:
    alone = origin.parent / "first"
    git(alone, "remote", "remove", "origin")
    _record(alone, 1)
    assert _push(alone) == 0
    assert git(alone, "ls-tree", "-r", "--name-only", "results").count("softmax") == 1
    assert main(["--project", str(alone), "store", "verify", "--results", "git:results"]) == 0
    git(alone, "worktree", "add", "-q", str(origin.parent / "tree"), "results")
    _record(alone, 2)
    capsys.readouterr()
    assert _push(alone) == 2
    assert "git:results: the branch is checked out" in capsys.readouterr().err


def test_what_git_refuses_is_one_line_without_secrets(origin: Path, capsys) -> None:
    first = origin.parent / "first"
    _record(first, 1)
    hook = origin / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho this branch is protected >&2\nexit 1\n")
    hook.chmod(0o755)
    for place, expected in (
        ("git:results", "cannot be pushed to: remote: this branch is protected"),
        ("git:/nowhere/at/all#results", "cannot be fetched: fatal:"),
        ("git:http://user:hunter2@127.0.0.1:1/x.git#results", "git:http://***@127.0.0.1:1/x.git#results: cannot be"),
        ("git:bad..name", "'bad..name' is no name of a branch"),
        ("git:", "names no branch"),
    ):
        capsys.readouterr()
        assert _push(first, place) == 2
        out, err = capsys.readouterr()
        assert out == "" and len(err.splitlines()) == 1 and expected in err and "hunter2" not in err, err


def test_outside_a_checkout_a_repository_must_be_named(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert main(["store", "verify", "--results", "git:results"]) == 2
    assert "name the repository: git:REPOSITORY#results" in capsys.readouterr().err
    assert mirror.mirror_of(Branch("results"), elsewhere) != mirror.mirror_of(Branch("results"), tmp_path)
