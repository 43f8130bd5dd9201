"""What a tree lists, and what it says when a file of it cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.errors import UserError
from groundspeed.operator import Case, is_name
from groundspeed.tree import SpecError, Tree, _idea
from tests.core.scratch import ADD, EAGER, SPEC, make_tree

NAMES = ("cuda_warp.cu", "cupy_raw.py", "triton_row.py", "torch_compile.py", "jax_scan.py", "torch_add.py")


def tree_with(root: Path, **files: str) -> Tree:
    return Tree(make_tree(root, {"double": files}))


def test_operators_are_the_folders_with_a_spec(tmp_path):
    tree = Tree(make_tree(tmp_path, {"double": {}, "add": {}}))
    (tmp_path / "_shared").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "Bad-Name").mkdir()
    (tmp_path / "Bad-Name" / "spec.py").write_text(SPEC)
    (tmp_path / "_shared" / "spec.py").write_text(SPEC)
    assert tree.operators() == ("add", "double")


def test_implementations_come_baseline_first_then_by_back_end_and_name(tmp_path):
    tree = tree_with(tmp_path, **dict.fromkeys(NAMES, '"""Idea."""\n'))
    extra = ("helpers.py", "_torch_private.py", "torch_eager.py.orig", "header_x.cuh", "torch_A.py", "__init__.py")
    for name in extra:
        (tmp_path / "double" / name).write_text("")
    names = [one.name for one in tree.implementations("double")]
    expected = "torch_eager torch_add torch_compile cuda_warp triton_row cupy_raw jax_scan"
    assert names == expected.split()
    assert [one.backend for one in tree.implementations("double")][-2:] == ["cupy", "jax"]


def test_a_companion_belongs_to_its_cuda_file(tmp_path):
    tree = tree_with(tmp_path, **{"cuda_warp.cu": "// A warp a row.\n", "cuda_warp": '"""Packs."""\n'})
    one = tree.implementation("double", "cuda_warp")
    assert one.cuda_source.name == "cuda_warp.cu" and one.python_source.name == "cuda_warp.py"
    assert one.idea == "A warp a row"
    digest = tree.implementation_digest(one)
    one.python_source.write_text("def unsupported(dtype, N):\n    return 'no'\n")
    assert tree.implementation_digest(one) != digest


def test_listing_imports_nothing(tmp_path):
    before = set(sys.modules)
    tree = tree_with(tmp_path, torch_bomb="raise SystemExit('imported')\n", spec="raise SystemExit('imported')\n")
    assert [one.name for one in tree.implementations("double")] == ["torch_eager", "torch_bomb"]
    assert tree.operators() == ("double",) and tree.implementations("double")[1].idea == ""
    assert not {name for name in sys.modules if name.startswith(tree.package)} - before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("SPEC = 3\n", "SPEC is a int, expected an Operator"),
        ("def inputs(:\n", "SyntaxError"),
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("x = 1\n", "AttributeError"),
        (SPEC.replace('dtypes=("float32",)', 'dtypes=("float33",)'), "unknown dtype 'float33'"),
        (
            SPEC.replace('"core": (', '"core": (case("float32", N=5), '),
            "float32 N=5 is not among dtypes × bench_shapes",
        ),
        (SPEC.replace("flops=lambda N: N,\n", ""), "flops"),
        ('raise ValueError("first\\nsecond")\n', "ValueError: first"),
        ("raise ValueError\n", "ValueError"),
    ],
)
def test_a_broken_spec_is_one_line_naming_file_and_fault(tmp_path, spec, said):
    tree = tree_with(tmp_path, spec=spec)
    with pytest.raises(SpecError) as caught:
        tree.spec("double")
    message = str(caught.value)
    assert message.startswith("double: ") and str(tmp_path / "double" / "spec.py") in message and said in message
    assert "\n" not in message


def test_names_that_are_not_there_are_errors_with_what_there_is(tmp_path):
    tree = tree_with(tmp_path, torch_add=ADD)
    with pytest.raises(SpecError, match=r"unknown operator 'sofmax': there are double; type: groundspeed list"):
        tree.spec("sofmax")
    with pytest.raises(UserError, match=r"double: unknown implementation 'torch_ad': there are torch_eager, torch_add"):
        tree.implementation("double", "torch_ad")
    with pytest.raises(UserError, match="no such folder of operators"):
        Tree(tmp_path / "nowhere")


def test_a_tree_under_anothers_package_name_is_refused_not_confused(tmp_path):
    first = Tree(make_tree(tmp_path / "base", {"double": {}}), "impls_shared_name")
    second = Tree(make_tree(tmp_path / "head", {"double": {}}), "impls_shared_name")
    first.load("double.torch_eager")
    with pytest.raises(UserError, match=r"expected a file under .*head"):
        second.load("double.torch_eager")


def test_trees_of_different_folders_never_share_a_package(tmp_path):
    trees = [Tree(make_tree(tmp_path / name, {"double": {}})) for name in ("a", "b")]
    assert trees[0].package != trees[1].package
    assert Tree(tmp_path / "b" / ".." / "a").package == trees[0].package


def test_another_trees_specs_judge_this_ones_implementations(tmp_path):
    head = Tree(make_tree(tmp_path / "head", {"double": {}, "new": {}}))
    old = make_tree(tmp_path / "base", {"double": {"spec": "SPEC = 3\n", "torch_old": ADD}, "gone": {}})
    base = Tree(old, specs=head)
    assert base.operators() == ("double", "new")
    assert base.spec("double") is head.spec("double")
    assert [one.name for one in base.implementations("double")] == ["torch_eager", "torch_old"]
    assert base.implementations("new") == ()
    case = Case.of("float32", {"N": 64})
    assert base.case_digest("double", case) == head.case_digest("double", case)


def test_an_init_that_raises_raises_every_time(tmp_path):
    tree = tree_with(tmp_path, torch_add=ADD)
    (tmp_path / "double" / "__init__.py").write_text('raise ValueError("half")\n')
    for _ in range(2):
        with pytest.raises(ValueError, match="half"):
            tree.load("double.torch_add")


# ideas


@pytest.mark.parametrize(
    ("name", "text", "idea"),
    [
        ("a.py", '"""One program a row: x is read once. More."""\n', "One program a row"),
        ("a.py", '"""Version 2.5 of it, faster.\n\nMore."""\n', "Version 2.5 of it, faster"),
        ("a.py", '"""Two\nlines\n\nMore."""\n', "Two lines"),
        ("a.py", "x = 1\n", ""),
        ("a.py", "def broken(:\n", ""),
        (
            "a.cu",
            "// One element a thread,\n// and a branch. More.\n//\n// More.\n#include <a>\n",
            "One element a thread, and a branch",
        ),
        ("a.cu", "/* A warp a row. */\n", "A warp a row"),
        ("a.cu", "/*\n * A block\n * a row; more.\n */\n", "A block a row"),
        ("a.cu", "int x;\n", ""),
        ("a.cu", "", ""),
    ],
)
def test_the_idea_is_the_headers_first_sentence(tmp_path, name, text, idea):
    (tmp_path / name).write_text(text)
    assert _idea(tmp_path / name) == idea


@given(st.binary(max_size=80), st.sampled_from(["x.py", "x.cu"]))
def test_no_header_breaks_the_listing(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    assert "\n" not in _idea(path)


@given(st.from_regex(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", fullmatch=True))
def test_names(name):
    assert is_name(name)
    assert not is_name(name.upper() + "A") and not is_name(f"_{name}") and not is_name(f"{name}_")
    assert not is_name(f"{name}\n")


def test_files_of_a_tree_compile_as_they_are(tmp_path):
    """EAGER and ADD, which half the tests rest on, are what they say."""
    tree = tree_with(tmp_path, torch_add=ADD)
    assert (tmp_path / "double" / "torch_eager.py").read_text() == EAGER
    assert [tree.load(f"double.{name}").prepare(3)() for name in ("torch_eager", "torch_add")] == [6, 6]
