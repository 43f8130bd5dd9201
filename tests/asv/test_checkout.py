"""Of a past commit, its implementation files and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundspeed.asv_checkout import check_out
from groundspeed.errors import UserError
from tests.asv.scratch import Scratch, make_scratch


@pytest.fixture
def project(tmp_path: Path) -> Scratch:
    return make_scratch(tmp_path, ("softmax",))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_each_commit_gives_its_own_files_and_removes_the_ones_before(project: Scratch, tmp_path: Path) -> None:
    project.implementation("softmax", "triton_row", claim=1)
    first = project.commit("first")
    project.implementation("softmax", "triton_row", claim=2)
    project.remove("impls/softmax/torch_eager.py")
    second = project.commit("second")

    impls = check_out(project.root, first, tmp_path / "out" / first)
    assert files(tmp_path / "out" / first) == {
        "impls/softmax/spec.py",
        "impls/softmax/torch_eager.py",
        "impls/softmax/triton_row.py",
    }
    assert "claims: 1" in (impls / "softmax/triton_row.py").read_text()

    impls = check_out(project.root, second, tmp_path / "out" / second)
    assert files(impls) == {"softmax/spec.py", "softmax/triton_row.py"}
    assert "claims: 2" in (impls / "softmax/triton_row.py").read_text()
    assert not (tmp_path / "out" / first).exists()


def test_a_commit_without_implementations_gives_an_empty_folder(project: Scratch, tmp_path: Path) -> None:
    project.git("add", "asv.conf.json")
    project.git("commit", "-q", "-m", "only the configuration")
    impls = check_out(project.root, "HEAD", tmp_path / "out" / "x")
    assert impls.is_dir()
    assert files(impls) == set()


def test_an_unknown_commit_is_one_clear_line(project: Scratch, tmp_path: Path) -> None:
    project.commit("first")
    with pytest.raises(UserError, match="no-such-commit") as caught:
        check_out(project.root, "no-such-commit", tmp_path / "out" / "x")
    assert "\n" not in str(caught.value)
