"""A library's back end: absent with its reason, opened with its variables, its version kept, and nothing imported
early.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import re
import subprocess
import sys

import pytest

from groundspeed.backends import MODULES, backend
from groundspeed.backends.base import Unusable
from groundspeed.backends.libraries import LIBRARIES, versions
from groundspeed.backends.library import Conflict, Library
from groundspeed.errors import UserError
from groundspeed.tree import Tree
from tests.architecture.sources import ROOT

ABSENT = Library(title="Nowhere", distribution="nowhere-at-all", extra="nowhere")
SPEC = "SPEC = None\n"
IMPLEMENTATION = '''"""Twice its input, by a package."""

import os

import pretend

SEEN = os.environ["PRETEND_MEMORY"]


def unsupported(dtype, N):
    return "no half" if dtype == "float16" else None


def prepare(x):
    return lambda: pretend.twice(x)
'''


def test_releases_that_fail_together_are_absent_with_both_versions(monkeypatch):
    installed = {"numba-cuda": "0.30.4", "numpy": "2.5.2"}
    monkeypatch.setattr("groundspeed.backends.library.version_of", lambda name: installed.get(name, ""))
    numba = LIBRARIES["numba"]
    assert numba.absent("cuda") == (
        "numba-cuda 0.30.4 fails with numpy 2.5.2 (it asks for numpy.row_stack, which is gone): "
        "pip install 'groundspeed[numba]'"
    )
    for changed in ({"numpy": "2.4.9"}, {"numba-cuda": "0.30.5"}):
        now = installed | changed
        monkeypatch.setattr("groundspeed.backends.library.version_of", lambda name, now=now: now.get(name, ""))
        assert numba.absent("cuda") is None
    assert Conflict("numba-cuda<1", "nowhere-at-all>=1", "").found() is None


def test_one_that_is_not_there_says_what_to_type():
    assert ABSENT.absent("cuda") == "nowhere-at-all is not installed: pip install 'groundspeed[nowhere]'"
    assert ABSENT.absent("cpu") == "Nowhere is timed on a GPU alone"
    assert ABSENT.version() == ""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """A library on the path with a wheel's metadata, and a tree with one implementation by it."""
    packages, impls = tmp_path / "packages", tmp_path / "impls" / "double"
    for folder in (packages / "pretend-1.2.3.dist-info", impls):
        folder.mkdir(parents=True)
    (packages / "pretend.py").write_text("def twice(x):\n    return x * 2\n")
    (packages / "pretend-1.2.3.dist-info" / "METADATA").write_text("Name: pretend\nVersion: 1.2.3\n")
    (impls / "spec.py").write_text(SPEC)
    (impls / "pretend_call.py").write_text(IMPLEMENTATION)
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.delenv("PRETEND_MEMORY", raising=False)
    library = Library(
        title="Pretend",
        distribution="pretend",
        extra="pretend",
        devices=frozenset({"cpu"}),
        environment={"PRETEND_MEMORY": "little"},
        own_memory="it has its own",
    )
    yield library, Tree(tmp_path / "impls")
    os.environ.pop("PRETEND_MEMORY", None)
    sys.modules.pop("pretend", None)


def test_one_that_is_there_is_opened_with_its_variables_set_first(pretend):
    import torch

    library, tree = pretend
    assert library.absent("cpu") is None and library.absent("cuda") == "Pretend is timed on a CPU alone"
    assert "pretend" not in sys.modules  # asking whether it is there imports nothing
    opened = library.open_implementation(tree, tree.implementation("double", "pretend_call"))
    run = opened.prepare({"x": torch.tensor([1.0, 2.0])})
    (out,) = opened.to_torch(run())
    assert out.tolist() == [2.0, 4.0]
    assert opened.own_memory == "it has its own" and opened.own_kernels() is None
    assert tree.load("double.pretend_call").SEEN == "little"


def test_a_variable_that_the_user_set_stays(pretend, monkeypatch):
    library, tree = pretend
    monkeypatch.setenv("PRETEND_MEMORY", "all of it")
    library.open_implementation(tree, tree.implementation("double", "pretend_call"))
    assert tree.load("double.pretend_call").SEEN == "all of it"


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ("import not_there_either\n", "ModuleNotFoundError: No module named 'not_there_either'"),
        ("import math\nraise ImportError('libpretend.so.1 is missing')\n", "ImportError: libpretend.so.1 is missing"),
        ("from sys import row_stack\n", "ImportError: cannot import name 'row_stack' from 'sys' (unknown location)"),
        ("import math\nmath.row_stack\n", "AttributeError: module 'math' has no attribute 'row_stack'"),
    ],
)
def test_one_that_is_installed_and_cannot_be_imported_is_no_fault_of_the_implementation(
    pretend, tmp_path, package, reason
):
    library, tree = pretend
    (tmp_path / "packages" / "pretend.py").write_text(package)
    with pytest.raises(Unusable) as caught:
        library.open_implementation(tree, tree.implementation("double", "pretend_call"))
    assert str(caught.value) == f"pretend 1.2.3 is installed, and cannot be imported here: {reason}"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NONE = [][0]", IndexError),
        ("raise ImportError('libfoo.so.1: cannot open shared object file')", ImportError),
        ("from .nowhere import kernel", ImportError),
    ],
)
def test_what_an_implementation_does_wrong_itself_stays_its_fault(pretend, tmp_path, line, kind):
    library, tree = pretend
    (tmp_path / "impls" / "double" / "pretend_call.py").write_text(f'"""Wrong."""\n\nimport pretend\n\n{line}\n')
    with pytest.raises(kind):
        library.open_implementation(tree, tree.implementation("double", "pretend_call"))


CHANGES = {
    "a function": "import torch\ntorch.nn.functional.relu = lambda x: x\n",
    "a method": "import torch\ntorch.Tensor.relu = lambda x: x\n",
    "a kernel of ATen's": (
        "import torch\nlibrary = torch.library.Library('aten', 'IMPL')\nlibrary.impl('relu', lambda x: x, 'CPU')\n"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_that_changes_torch_when_imported_is_refused_unless_it_is_declared_alone(pretend, tmp_path, change):
    program = (
        "import dataclasses, sys\n"
        "from pathlib import Path\n"
        "from groundspeed.backends.library import Library\n"
        "from groundspeed.errors import UserError\n"
        "from groundspeed.tree import Tree\n"
        f"sys.path.insert(0, {str(tmp_path / 'packages')!r})\n"
        f"tree = Tree(Path({str(tmp_path / 'impls')!r}))\n"
        "one = Library(title='Pretend', distribution='pretend', extra='', environment={'PRETEND_MEMORY': '1'})\n"
        "try:\n"
        "    one.open_implementation(tree, tree.implementation('double', 'pretend_call'))\n"
        "except UserError as error:\n"
        "    print(error)\n"
        "dataclasses.replace(one, alone='it replaces relu').open_implementation(\n"
        "    tree, tree.implementation('double', 'pretend_call')\n"
        ")\n"
    )
    (tmp_path / "packages" / "pretend.py").write_text(CHANGES[change])
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "double/pretend_call: importing it changes torch for every other implementation: " in done.stdout
    assert "relu" in done.stdout and "declare Pretend alone" in done.stdout


def test_versions_are_of_libraries_that_are_used_and_installed(pretend, monkeypatch):
    library, _ = pretend
    monkeypatch.setattr("groundspeed.backends.libraries.LIBRARIES", {"pretend": library, "nowhere": ABSENT})
    assert versions(["torch", "pretend", "nowhere"]) == {"pretend": "1.2.3"}
    assert versions(["torch", "nowhere"]) == {}


def test_versions_are_of_the_compiler_beside_it_and_of_what_torch_was_built_with_too(pretend, monkeypatch):
    library, _ = pretend
    more = dataclasses.replace(library, beside=("msgspec", "nowhere-at-all"), inside={"part": lambda: "4.5"})
    monkeypatch.setattr("groundspeed.backends.libraries.LIBRARIES", {"pretend": more})
    expected = {"msgspec": importlib.metadata.version("msgspec"), "part": "4.5", "pretend": "1.2.3"}
    assert versions(["pretend"]) == expected and list(versions(["pretend"])) == sorted(expected)


def test_onednns_version_is_its_own_and_not_only_torchs():
    import torch

    found = versions(["onednn"])
    assert found["torch"] == importlib.metadata.version("torch")
    assert f"v{found['onednn']} " in torch.__config__.show() and re.fullmatch(r"\d+\.\d+\.\d+", found["onednn"])


@pytest.mark.parametrize(
    ("library", "wheels"),
    [
        ("iree", {"iree-base-compiler", "iree-base-runtime", "jax"}),
        ("quack", {"quack-kernels", "nvidia-cutlass-dsl"}),
        ("jax", {"jax", "jaxlib"}),
    ],
)
def test_what_compiles_for_a_library_is_named_with_it(library, wheels):
    assert {LIBRARIES[library].distribution, *LIBRARIES[library].beside} == wheels


def test_every_library_has_a_name_of_its_own_and_an_extra_that_exists():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert not set(LIBRARIES) & set(MODULES)
    for name, library in LIBRARIES.items():
        assert name.isidentifier() and "_" not in name  # what an implementation's name is cut at
        assert not library.extra or library.extra in extras
        assert backend(name) is library


def test_an_unknown_back_end_names_those_there_are():
    with pytest.raises(UserError, match=r"unknown back end 'cudnn'.*torch, cuda.*jax"):
        backend("cudnn")


def test_asking_for_every_library_imports_none_of_them():
    """Also where it is installed: a listing and a check on the CPU ask this."""
    program = (
        "import sys\n"
        "from groundspeed.backends.libraries import LIBRARIES, versions\n"
        "for one in LIBRARIES.values(): one.absent('cuda'), one.absent('cpu')\n"
        "versions(name for name, one in LIBRARIES.items() if not one.inside)\n"  # torch tells those, where it is used
        "heavy = 'torch triton numpy jax liger_kernel flag_gems quack flash_attn numba numba_cuda warp nvmath'\n"
        "print(sorted(set(heavy.split()) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_new_implementation_of_a_library_begins_with_a_file_that_loads(tmp_path):
    from tests.cli import toy_project

    root = toy_project.make(tmp_path / "project", double={})
    done = toy_project.groundspeed("new", "implementation", "double/jax_mine", cwd=root)
    assert done.returncode == 0, done.stderr
    assert Tree(root / "impls").implementation("double", "jax_mine").idea.startswith("The idea in one sentence")
    wrong = toy_project.groundspeed("new", "implementation", "double/jaxx_mine", cwd=root)
    assert wrong.returncode == 2 and "did you mean 'jax'" in wrong.stderr
