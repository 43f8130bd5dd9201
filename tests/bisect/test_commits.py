"""Which commits are searched, and what an implementation is at each of them."""

from __future__ import annotations

import pytest

from groundspeed.bisect.commits import Versions, ancestors_only, row_of
from groundspeed.errors import UserError
from tests.bisect.conftest import ROW


@pytest.fixture
def row(repo, tmp_path):
    def find(good, bad, name="triton_row"):
        folder = tmp_path / f"unpacked-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return row_of(Versions(repo.root, "double", name, bad, folder), good, bad)

    return find


def commits(row):
    return [version.commit for version in row.versions]


def test_only_commits_that_change_the_closure_are_searched(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.write("impls/double/torch_eager.py", '"""Eager."""\nCOST = 900\n')
    repo.commit("Another implementation")
    repo.edit("impls/_shared.py", "SCALE = 1", "SCALE = 1.1")
    shared = repo.commit("What it imports")
    repo.edit(ROW, '"""A row."""', '"""A row, explained."""')
    repo.commit("A docstring")
    repo.write("README.md", "words\n")
    repo.commit("Outside impls/")
    repo.edit(ROW, "COST = 500", "COST = 700")
    own = repo.commit("Its own file")
    assert commits(row(good, own)) == [shared, own]


def test_what_it_imports_only_in_between_counts_too(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.write("impls/_passing.py", "STEP = 1\n")
    repo.edit(ROW, "from .. import _shared", "from .. import _shared, _passing")
    begins = repo.commit("Import it")
    repo.write("impls/_passing.py", "STEP = 2\n")
    changes = repo.commit("Change it: neither end imports this file")
    repo.edit(ROW, "from .. import _shared, _passing", "from .. import _shared")
    repo.edit(ROW, "COST = 500", "COST = 700")
    ends = repo.commit("Import it no more")
    repo.write("impls/_passing.py", "STEP = 3\n")
    repo.commit("Nobody's")
    assert commits(row(good, repo.git("rev-parse", "HEAD"))) == [begins, changes, ends]


def test_an_older_name_is_followed(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.edit(ROW, "COST = 500", "COST = 600")
    before = repo.commit("Slower")
    repo.git("mv", ROW, "impls/double/triton_line.py")
    renamed = repo.commit("Rename it")
    found = row(good, renamed, "triton_line")
    assert commits(found) == [before, renamed]
    assert [version.implementation for version in found.versions] == ["triton_row", "triton_line"]


def test_a_merge_stands_for_what_it_merged(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "side")
    repo.edit(ROW, "COST = 500", "COST = 600")
    repo.commit("Slower, on a branch")
    repo.git("checkout", "-q", "topic")
    repo.write("README.md", "meanwhile\n")
    repo.commit("Meanwhile")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge it", "side")
    merge = repo.git("rev-parse", "HEAD")
    assert commits(row(good, merge)) == [merge]


def test_where_the_closure_did_not_change_everything_in_impls_is_searched(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.write("impls/double/table.txt", "1\n")
    hidden = repo.commit("Read by nobody knows whom")
    repo.write("README.md", "words\n")
    repo.commit("Outside impls/")
    found = row(good, repo.git("rev-parse", "HEAD"))
    assert found.whole and commits(found) == [hidden]


def test_without_any_change_in_impls_there_is_nothing_to_search(repo, row):
    good = repo.git("rev-parse", "HEAD")
    repo.write("README.md", "words\n")
    assert not row(good, repo.commit("Outside")).versions


def test_a_project_below_the_repositorys_folder(tmp_path, repo):
    """git names paths from its own root, the project's are relative to the project."""
    repo.git("mv", "impls", "asv.conf.json", "-k", ".")
    (repo.root / "kernels").mkdir()
    repo.git("mv", "impls", "asv.conf.json", "kernels/")
    good = repo.commit("Move")
    repo.edit("kernels/" + ROW, "COST = 500", "COST = 700")
    bad = repo.commit("Slower")
    (tmp_path / "u").mkdir()
    found = row_of(Versions(repo.root / "kernels", "double", "triton_row", bad, tmp_path / "u"), good, bad)
    assert commits(found) == [bad]


def test_ends_that_are_no_ends_are_refused(repo):
    first = repo.git("rev-parse", "HEAD")
    second = repo.commit("Later")
    repo.git("checkout", "-q", "-b", "other", first)
    other = repo.commit("Elsewhere")
    ancestors_only(repo.root, first, second)
    with pytest.raises(UserError, match="comes before good"):
        ancestors_only(repo.root, second, first)
    with pytest.raises(UserError, match=f"does not descend from good.*part at {first[:12]}"):
        ancestors_only(repo.root, second, other)
    with pytest.raises(UserError, match="one commit"):
        ancestors_only(repo.root, first, first)
