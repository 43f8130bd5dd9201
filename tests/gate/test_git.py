"""What the gate reads from git, with names and repositories that invite mistakes."""

from __future__ import annotations

import pytest

from groundspeed import machine
from groundspeed.cli import main
from groundspeed.errors import UserError
from groundspeed.gate import git
from groundspeed.gate.git import WORKTREE, Change

ODD = "impls/double/a b\tc\nd é →.txt"


def test_changes_keep_odd_names_and_follow_renames(repo):
    repo.write(ODD, "x")
    repo.git("mv", "impls/double/triton_row.py", "impls/double/triton_line.py")
    (repo.root / "impls/_shared.py").unlink()
    repo.commit()
    found = set(git.changes(repo.root, "main", "topic"))
    assert found == {
        Change("A", ODD),
        Change("D", "impls/_shared.py"),
        Change("R", "impls/double/triton_line.py", "impls/double/triton_row.py"),
    }


def test_the_worktree_has_its_untracked_files_but_not_the_ignored_ones(repo):
    repo.write(".gitignore", "*.tmp\n")
    repo.write("impls/x.tmp", "")
    repo.write(ODD, "x")
    assert set(git.changes(repo.root, "main", WORKTREE)) == {Change("A", ".gitignore"), Change("A", ODD)}


def test_a_project_in_a_subfolder_sees_its_own_paths(repo):
    repo.write("sub/impls/op/spec.py", "1")
    repo.write("outside.py", "1")
    repo.commit()
    sub = repo.root / "sub"
    assert git.changes(sub, "main", "topic") == (Change("A", "impls/op/spec.py"),)
    assert git.show(sub, "topic", "impls/op/spec.py") == "1"
    target = repo.root.parent / "out"
    target.mkdir()
    assert git.extract(sub, "topic", "impls", target)
    assert (target / "impls/op/spec.py").read_text() == "1"


def test_extract_refuses_a_version_with_holes(repo, tmp_path):
    repo.write(".gitattributes", "impls/double/triton_row.py export-ignore\n")
    repo.commit()
    with pytest.raises(UserError, match=r"triton_row\.py was not unpacked"):
        git.extract(repo.root, "topic", "impls", tmp_path / "out")
    assert not git.extract(repo.root, "topic", "nothing", tmp_path / "out")


def test_trailers_are_read_from_the_range_alone_and_unfolded(repo):
    repo.commit("One\n\nPerf-Accepted: a/b first reason\n  goes on")
    repo.commit("Two\n\nPerf-Accepted: a/c second\nPerf-Accepted: a/d third\nSigned-off-by: x")
    repo.commit("Three\n\nPerf-Accepted: in the middle of the message, which is no trailer\n\nThe end.")
    texts = [trailer.text for trailer in git.trailers(repo.root, "main", "topic")]
    assert texts == ["a/c second", "a/d third", "a/b first reason goes on"]
    assert git.trailers(repo.root, "topic", "topic") == ()


def test_a_revision_cannot_be_an_option(repo):
    for revision in ("--help", "-n1"):
        with pytest.raises(UserError, match="no revision"):
            git.resolve(repo.root, revision)


@pytest.mark.parametrize("typed", [("--base", ""), ("--base", " "), ("--base", "main", "--head", "")])
def test_an_empty_revision_is_named_before_anything_else(repo, typed):
    with pytest.raises(UserError, match=r"^a revision is empty, expected a branch, tag or commit; type: \S") as error:
        repo.gate(*typed)
    assert not isinstance(error.value, git.NoCommit)


def test_an_unknown_revision_is_one_line_with_the_nearest_names(repo, monkeypatch):
    repo.git("tag", "v1.0")
    monkeypatch.chdir(repo.root)
    repo.capsys.readouterr()
    for typed, said in (("mian", ": did you mean 'main'?"), ("v1.1", ": did you mean 'v1.0'?"), ("zzzz", "")):
        assert main(["gate", "--base", typed, "--device", "cpu"]) == 2
        printed = repo.capsys.readouterr()
        assert not printed.out
        assert printed.err == f"groundspeed: {typed}: no such commit in this clone{said}\n"


def test_fetching_is_advised_only_where_there_is_a_remote(repo):
    with pytest.raises(git.NoCommit) as error:
        git.resolve(repo.root, "zzzz")
    assert "fetch" not in str(error.value)
    repo.git("remote", "add", "origin", "/nowhere")
    with pytest.raises(git.NoCommit, match=r"type: git fetch$"):
        git.resolve(repo.root, "zzzz")


@pytest.mark.parametrize("command", [["gate", "--base", "HEAD"], ["bisect", "double/triton_row", "main", "HEAD"]])
@pytest.mark.parametrize(
    ("built", "why"), [(True, "no GPU is visible here"), (False, "the torch installed here was built without CUDA")]
)
def test_a_gpu_that_is_not_there_is_refused_at_once(repo, monkeypatch, command, built, why):
    monkeypatch.setattr(machine, "visible_gpu_count", lambda: 0)
    monkeypatch.setattr(machine, "torch_has_cuda", lambda: built)
    repo.edit("impls/double/triton_row.py", "COST = 500", "COST = 501")
    repo.capsys.readouterr()
    assert main(["--project", str(repo.root), *command, "--device", "cuda"]) == 2
    printed = repo.capsys.readouterr()
    assert not printed.out and printed.err.startswith(f"groundspeed: --device cuda: {why}")
    assert printed.err.count("\n") == 1


def test_histories_without_a_common_commit_are_named(repo):
    repo.git("checkout", "-q", "--orphan", "alone")
    repo.commit("Alone")
    with pytest.raises(git.NoCommit, match="no common commit"):
        git.merge_base(repo.root, git.resolve(repo.root, "main"), git.resolve(repo.root, "alone"))
