"""A separate package adds operators and implementations by an entry point, without a line in this repository."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from groundspeed.errors import UserError
from groundspeed.guests import GROUP, guests, tree_with_guests
from groundspeed.operator import Case
from groundspeed.scaffold.operator import operator_files
from tests.cli import toy_project
from tests.cli.toy_project import ADD, EAGER, SPEC, WRONG, groundspeed
from tests.paths import ROOT, python_path
from tests.ranks import scratch as ranks

HALVED = SPEC.replace("2 * x", "x / 2").replace("Twice x", "Half of x")


def install(site: Path, entry: str = "mykernels.ops", name: str = "mykernels", **operators: dict[str, str]) -> Path:
    """A wheel's files as pip would unpack them: a package whose import raises, and its metadata."""
    top = site / name
    top.mkdir(parents=True)
    (top / "__init__.py").write_text("raise ImportError('nobody needs to import this')\n")
    for operator, files in operators.items():
        folder = top / "ops" / operator
        folder.mkdir(parents=True)
        for stem, text in files.items():
            (folder / f"{stem}.py").write_text(text)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {entry}\n")
    return site


@pytest.fixture
def project(tmp_path):
    return toy_project.make(tmp_path / "project", double={"torch_add": ADD})


def visible(site: Path) -> dict[str, str]:
    return {"PYTHONPATH": python_path(ROOT, site), "GROUNDSPEED_DEVICE": "cpu"}


def test_its_operator_and_its_implementations_are_listed_checked_and_measured(project, tmp_path):
    shared = '"""Shared within the package."""\n\n\ndef twice(x):\n    return x + x\n'
    mine = '"""The package\'s own doubling."""\n\nfrom .._shared.twice import twice\n\n\ndef prepare(x):\n'
    site = install(
        tmp_path / "site",
        double={"torch_mine": mine + "    return lambda: twice(x)\n"},
        halve={"spec": HALVED, "torch_eager": EAGER.replace("x * 2", "x / 2")},
        _shared={"twice": shared},
    )
    listed = groundspeed("list", cwd=project, **visible(site)).stdout
    assert "halve" in listed and "2 operators, 4 implementations" in listed
    checked = groundspeed("check", cwd=project, **visible(site))
    assert checked.returncode == 0 and "24 checks passed" in checked.stdout, checked.stdout + checked.stderr
    only = ("--only", "double/torch_mine", "--only", "halve")
    run = groundspeed("run", *only, "--results", str(tmp_path / "r"), cwd=project, **visible(site))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "torch_mine" in run.stdout and "halve" in run.stdout
    without = groundspeed("list", cwd=project, GROUNDSPEED_DEVICE="cpu").stdout
    assert "halve" not in without and "1 operators, 2 implementations" in without


def test_a_line_that_it_left_to_be_written_is_pointed_at_where_it_lies(project, tmp_path):
    begun = operator_files("begun")
    site = install(tmp_path / "site", begun={Path(name).stem: text for name, text in begun.items()})
    done = groundspeed("check", "begun", cwd=project, **visible(site))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    text = "".join(done.stdout.split())  # a long path is not wrapped, what is to be written is
    for name in ("spec.py", "torch_eager.py"):
        assert f"{site / 'mykernels' / 'ops' / 'begun' / name}:" in text


@pytest.mark.slow
def test_its_implementation_of_an_operator_over_ranks_is_checked_with_the_others(project, tmp_path):
    summed = ranks.EAGER.replace("y = x.clone()", "y = x + 0")
    (project / "impls" / "total").mkdir()
    for stem, text in {"spec": ranks.SPEC, "torch_eager": ranks.EAGER}.items():
        (project / "impls" / "total" / f"{stem}.py").write_text(text)
    site = install(tmp_path / "site", total={"torch_mine": summed})
    done = groundspeed("check", "total", cwd=project, **visible(site))
    assert done.returncode == 0 and "4 checks passed" in done.stdout, done.stdout + done.stderr


def test_what_it_gets_wrong_is_found(project, tmp_path):
    site = install(tmp_path / "site", double={"torch_theirs": WRONG})
    done = groundspeed("check", "double/torch_theirs", cwd=project, **visible(site))
    assert done.returncode == 1 and "incorrect" in done.stdout


def documented(root: Path, files: dict[str, str]) -> None:
    """The package that docs/backends.md shows: its folders and its pyproject.toml to the letter, with texts of ours."""
    page = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    section = page.partition("## Operators and implementations of another package")[2]
    layout, settings = re.findall(r"```(?:toml)?\n(.*?)```", section, re.DOTALL)
    top, *lines = layout.splitlines()
    assert top == f"{root.name}/"
    shown = [line.split()[0] for line in lines]
    assert sorted(shown) == sorted(["pyproject.toml", *files])
    for name in shown:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files.get(name, settings))


@pytest.mark.slow
def test_a_package_as_the_docs_show_it_brings_its_files_once_it_is_built_and_installed(tmp_path):
    pytest.importorskip("setuptools", reason="nothing here builds wheels")
    impls = "my_kernels/impls"
    texts = {
        "my_kernels/__init__.py": "raise ImportError('nobody needs to import this')\n",
        f"{impls}/softmax/triton_mine.py": toy_project.TRITON,
        f"{impls}/my_operator/spec.py": HALVED,
        f"{impls}/my_operator/torch_eager.py": EAGER.replace("x * 2", "x / 2"),
    }
    root = tmp_path / "my_kernels"
    documented(root, texts)
    for name in ("cuda_mine.cu", "shared.cuh"):  # its settings speak of them too
        (root / impls / "my_operator" / name).write_text("// A kernel.\n")
    program = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    built = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=root, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    with zipfile.ZipFile(tmp_path / built.stdout.split()[-1]) as wheel:
        wheel.extractall(site)
    assert {"cuda_mine.cu", "shared.cuh"} <= {path.name for path in (site / impls / "my_operator").iterdir()}
    project = toy_project.make(tmp_path / "project", softmax={})
    listed = groundspeed("list", cwd=project, **visible(site)).stdout
    assert "my_operator" in listed and "2 operators, 4 implementations" in listed
    checked = groundspeed("check", cwd=project, **visible(site))
    right = 12 if importlib.util.find_spec("triton") is None else 18
    assert checked.returncode == 0 and f"{right} checks passed" in checked.stdout, checked.stdout + checked.stderr


@pytest.fixture
def seen(monkeypatch, tmp_path):
    """Packages of a folder that this process can see."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    return site


def test_digests_are_of_the_file_that_runs(project, seen):
    install(seen, double={"torch_mine": ADD}, halve={"spec": HALVED, "torch_eager": EAGER})
    tree = tree_with_guests(project / "impls")
    theirs = tree.implementation("double", "torch_mine")
    ours = tree.implementation("double", "torch_add")
    assert tree.home(ours) is tree and tree.home(theirs) is not tree
    before = tree.implementation_digest(theirs)
    theirs.files[0].write_text(ADD.replace("x + x", "2 * x"))
    assert tree.implementation_digest(theirs) != before
    assert tree.case_digest("halve", Case("float32", (("N", 1),))) != tree.case_digest(
        "double", Case("float32", (("N", 1),))
    )
    assert tree.spec("halve").reference(4.0) == 2.0
    assert "mykernels" not in sys.modules  # it was never imported


def test_a_name_that_is_there_already_is_refused_with_both_files(project, seen):
    install(seen, double={"torch_add": ADD})
    with pytest.raises(UserError, match=r"double/torch_add is there twice: .*impls.* and .*mykernels"):
        tree_with_guests(project / "impls").implementations("double")


def test_an_entry_point_to_nowhere_names_its_package(seen):
    install(seen, entry="mykernels.elsewhere")
    with pytest.raises(
        UserError, match=r"mykernels: its entry point groundspeed.impls: mykernels = mykernels.elsewhere"
    ):
        guests()


def test_where_nothing_is_installed_there_are_none(project):
    assert guests() == ()
    assert tree_with_guests(project / "impls").operators() == ("double",)
