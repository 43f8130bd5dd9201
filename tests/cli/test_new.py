"""`groundspeed new`: what it writes loads, runs, fails its own check with a hint, and passes once it is filled in."""

from __future__ import annotations

import shutil

import pytest

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.build import build, find_toolchain
from groundspeed.commands.new import inputs_of
from groundspeed.errors import UserError
from groundspeed.scaffold.implementation import SUFFIXES, implementation_text, need_of, suffix_of
from groundspeed.scaffold.libraries import SKELETONS
from groundspeed.scaffold.marks import unfinished
from groundspeed.tree import Tree
from tests.cli import toy_project
from tests.cli.toy_project import ROOT, groundspeed
from tests.ranks import scratch as ranks


@pytest.fixture
def project(tmp_path):
    return toy_project.make(tmp_path / "p", double={})


def new(project, *arguments):
    return groundspeed("new", *arguments, cwd=project)


def check(project, target):
    return groundspeed("check", target, cwd=project, GROUNDSPEED_DEVICE="cpu")


def fill_in(path, old, answer):
    """Write the answer where the mark is, as a newcomer would: delete the marked line and replace the one below."""
    text = path.read_text()
    marked = next(line for line in text.splitlines() if "groundspeed new:" in line)
    assert old in text
    path.write_text(text.replace(marked + "\n", "").replace(old, answer))


@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_an_implementation_runs_and_fails_its_check_until_it_is_filled_in(project, backend):
    if backend == "triton":
        pytest.importorskip("triton")
    name = f"{backend}_mine"
    done = new(project, "implementation", f"double/{name}")
    assert done.returncode == 0
    assert f"wrote impls/double/{name}.py" in done.stdout and f"check double/{name}" in done.stdout
    failed = check(project, f"double/{name}")
    assert failed.returncode == 1
    assert "incorrect: " in failed.stdout and "Still to write" in failed.stdout
    path = project / "impls" / "double" / f"{name}.py"
    (mark,) = unfinished([path])
    assert f"impls/double/{name}.py:{mark.line}" in failed.stdout
    assert "compute y from x, then delete this line" in failed.stdout
    old, answer = {"torch": ("torch.empty_like(x)", "x + x"), "triton": ('x * float("nan")', "x + x")}[backend]
    fill_in(path, old, answer)
    passed = check(project, f"double/{name}")
    assert passed.returncode == 0 and "Still to write" not in passed.stdout, passed.stdout


@pytest.mark.parametrize("library", ["jax", "iree"])
def test_a_librarys_begins_with_the_library_and_fails_its_check_until_it_is_filled_in(project, library):
    pytest.importorskip({"jax": "jax", "iree": "iree.compiler"}[library], reason=f"{library} is not installed")
    alone = new(project, "implementation", f"double/{library}_alone")
    assert f"it uses impls/_{library}/" in alone.stdout and "not here: copy it" in alone.stdout
    for folder in ("_jax", "_iree", "_torch"):
        shutil.copytree(ROOT / "impls" / folder, project / "impls" / folder)
    done = new(project, "implementation", f"double/{library}_mine")
    assert done.returncode == 0 and "it uses" not in done.stdout
    assert f"a finished one to look at: impls/double/{library}_alone.py" in done.stdout
    failed = check(project, f"double/{library}_mine")
    assert failed.returncode == 1 and "incorrect: finite: " in failed.stdout
    assert "error: " not in failed.stdout and "compute y from x, then delete this line" in failed.stdout
    fill_in(project / "impls" / "double" / f"{library}_mine.py", "x * jnp.nan", "x + x")
    passed = check(project, f"double/{library}_mine")
    assert passed.returncode == 0 and "Still to write" not in passed.stdout, passed.stdout


@pytest.mark.slow
def test_over_several_gpus_it_is_given_one_ranks_inputs_and_fails_its_check(tmp_path):
    pytest.importorskip("triton", reason="Triton is needed")
    for folder in ("all_reduce", "_specs", "_triton", "_ranks"):
        shutil.copytree(ROOT / "impls" / folder, tmp_path / "impls" / folder)
    (tmp_path / "asv.conf.json").write_text("{}")
    for backend, suffix in (("torch", "py"), ("triton", "py"), ("cuda", "cu")):
        done = new(tmp_path, "implementation", f"all_reduce/{backend}_mine")
        assert f"wrote impls/all_reduce/{backend}_mine.{suffix}" in done.stdout, done.stderr
        assert f"a finished one to look at: impls/all_reduce/{backend}_" in done.stdout
    failed = check(tmp_path, "all_reduce/*_mine")
    assert failed.returncode == 1 and "error: " not in failed.stdout and "Traceback" not in failed.stderr
    assert "30 checks failed, 0 passed, 15 skipped" in failed.stdout, failed.stdout
    assert failed.stdout.count("compute y from x of all ranks, then delete this line") == 3


def test_inputs_of_ranks_that_cannot_be_drawn_are_said(tmp_path):
    spec = ranks.SPEC.replace("for _ in range(W)]", "for _ in range(W)][0]")
    root = toy_project.make(tmp_path / "p", total={"spec": spec})
    done = new(root, "implementation", "total/torch_x")
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "total/spec.py: inputs() gives no list of dicts, one a rank: KeyError: 0" in done.stderr


def test_an_operator_runs_and_fails_its_check_until_it_is_filled_in(project):
    done = new(project, "operator", "tripled")
    assert done.returncode == 0
    assert "wrote impls/tripled/spec.py" in done.stdout and "check tripled" in done.stdout
    assert "tripled" in groundspeed("list", cwd=project).stdout
    failed = check(project, "tripled")
    assert failed.returncode == 1 and "incorrect: " in failed.stdout
    for part in ("spec.py", "torch_eager.py", "return the right answer", "choose shapes"):
        assert part in failed.stdout
    spec, eager = (project / "impls" / "tripled" / file for file in ("spec.py", "torch_eager.py"))
    fill_in(spec, "    return x\n", "    return 3 * x\n")
    still_wrong = check(project, "tripled")
    assert still_wrong.returncode == 1 and "incorrect: " in still_wrong.stdout
    fill_in(eager, "torch.empty_like(x)", "3 * x")
    assert check(project, "tripled").returncode == 0


def test_what_cannot_run_here_is_pointed_at_all_the_same(project):
    new(project, "implementation", "double/cuda_mine")
    done = check(project, "double/cuda_mine")
    assert done.returncode == 1 and "impls/double/cuda_mine.cu:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("operator", "double"), ("double/spec.py exists", "not written over", "new implementation double/")),
        (("operator", "Bad-Name"), ("'Bad-Name' cannot name an operator", "lower-case letters")),
        (("operator", "a/b"), ("'a/b' cannot name an operator",)),
        (("operator", "calibrate"), ("'calibrate' cannot name an operator", "noise floors")),
        (("operator", "class"), ("'class' cannot name an operator",)),
        (("operator", "x" * 400), ("cannot name an operator",)),
        (("implementation", "double"), ("OPERATOR/BACKEND_IDEA", "double/triton_idea")),
        (("implementation", "duble/torch_x"), ("unknown operator 'duble'", "'double'")),
        (("implementation", "double/tritn_x"), ("unknown back end 'tritn'", "'triton'")),
        (("implementation", "double/torch"), ("'torch' cannot name an implementation", "torch_<idea>")),
        (("implementation", "double/torch_../../x"), ("cannot name an implementation",)),
        (("implementation", "double/torch_eager"), ("double/torch_eager exists",)),
        (("thing", "x"), ("'thing'", "operator")),
        (("operator",), ("NAME",)),
    ],
)
def test_a_bad_name_is_one_line_and_status_2_and_nothing_is_written(project, arguments, words):
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    done = new(project, *arguments)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_half_an_operator_is_not_completed_over_what_is_there(project):
    folder = project / "impls" / "half"
    folder.mkdir()
    (folder / "torch_eager.py").write_text("kept")
    done = new(project, "operator", "half")
    assert done.returncode == 2 and "half/torch_eager.py exists" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["torch_eager.py"]
    assert (folder / "torch_eager.py").read_text() == "kept"


def test_a_reference_without_named_inputs_is_said(tmp_path):
    spec = toy_project.SPEC.replace("lambda x: 2 * x", "lambda **all: all['x']")
    root = toy_project.make(tmp_path / "p", vague={"spec": spec})
    done = new(root, "implementation", "vague/torch_x")
    assert done.returncode == 2 and "vague" in done.stderr and "names no inputs" in done.stderr


@pytest.mark.parametrize("backend", SUFFIXES)
@pytest.mark.parametrize("operator", ["relu", "normalize_color", "matmul"])
def test_every_template_fits_the_inputs_of_the_spec_and_the_rules_of_the_house(tmp_path, operator, backend):
    shutil.copytree(ROOT / "impls" / operator, tmp_path / "impls" / operator)
    shutil.copytree(ROOT / "impls" / "_specs", tmp_path / "impls" / "_specs")
    (tmp_path / "asv.conf.json").write_text("{}")
    done = new(tmp_path, "implementation", f"{operator}/{backend}_new_idea")
    assert done.returncode == 0, done.stderr
    one = Tree(tmp_path / "impls").implementation(operator, f"{backend}_new_idea")
    assert 10 <= len(one.idea) <= 200
    text = one.files[0].read_text()
    assert "$" not in text and len(unfinished(one.files)) == 1
    inputs = {"relu": ["x"], "normalize_color": ["x", "mean", "std", "M"], "matmul": ["a", "b"]}[operator]
    signature = ", ".join(f"Tensor {name}" for name in inputs) if backend == "cuda" else ", ".join(inputs)
    assert f"run({signature})" in text or f"prepare({signature})" in text
    if one.python_source:
        compile(text, one.files[0].name, "exec")
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("backend", [*SUFFIXES, *LIBRARIES])
def test_a_skeleton_of_any_operator_is_python_within_120_columns_with_one_line_to_write(backend):
    tree = Tree(ROOT / "impls")
    for operator in tree.operators():
        spec = tree.spec(operator)
        text = implementation_text(
            operator, f"{backend}_mine", inputs_of(tree, operator, spec), spread=bool(spec.world)
        )
        assert max(map(len, text.splitlines())) <= 120, text
        assert "$" not in text and text.count("groundspeed new: compute y from ") == 1
        assert not need_of(backend) or (ROOT / "impls" / need_of(backend)).is_file()
        if suffix_of(backend) == ".py":
            compile(text, f"{operator}/{backend}_mine.py", "exec")


def test_every_library_has_a_skeleton_of_its_own():
    assert set(SKELETONS) == set(LIBRARIES)
    texts = {name: implementation_text("double", f"{name}_mine", ("x",)) for name in LIBRARIES}
    texts["torch"] = implementation_text("double", "torch_mine", ("x",))
    assert len(set(texts.values())) == len(texts)


@pytest.mark.slow
def test_the_cuda_template_compiles(tmp_path):
    try:
        toolchain = find_toolchain()
    except UserError as missing:
        pytest.skip(str(missing))
    shutil.copytree(ROOT / "impls" / "_cuda", tmp_path / "_cuda")
    source = tmp_path / "normalize_color" / "cuda_new.cu"
    source.parent.mkdir()
    long = tuple(f"an_input_with_a_long_name_{number}" for number in range(8))  # its schema takes more than one line
    source.write_text(implementation_text("normalize_color", "cuda_new", ("x", "mean", "std", "M", *long)))
    names = {resource.name.partition("<")[0] for resource in build(tmp_path, source, toolchain).resources}
    assert any("normalize_color_new" in name for name in names)
