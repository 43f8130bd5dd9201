"""A digest changes when what runs can have changed, and only then."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed import digest
from groundspeed.operator import Case

SPEC = '''"""Row sums."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data
from .._shared import scale
from .._cost import flop_count

LOW, HIGH = -1.0, 1.0
STEP: float = 0.5
UNUSED = 3


def draw(generator, N):
    """Uniform."""
    return generator * LOW + N * HIGH  # a comment


def inputs(generator, dtype, device, N):
    from .._late import late

    return {"x": data(draw(generator, N) + STEP + late())}


def reference(x):
    return scale(x)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: flop_count(N),
    bytes=lambda itemsize, N: Traffic(N, N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-6, 1e-6)},
    check_shapes=tuple(dict(N=generator) for generator in (1, 2)),
    bench_shapes=(dict(N=4),),
    tiers={"small": (case("float32", N=4),), "core": (case("float32", N=4),)},
)
'''
SHARED = "from ._constants import FACTOR\n\n\ndef scale(x):\n    return FACTOR * x\n"
FILES = {
    "_shared.py": SHARED,
    "_constants.py": "FACTOR = 2\n",
    "_cost.py": "def flop_count(N):\n    return N\n",
    "_late.py": "def late():\n    return 0\n",
}
CASE = Case.of("float32", {"N": 4})


def write(root: Path, spec: str = SPEC, **changes: str) -> Path:
    (root / "sums").mkdir(parents=True, exist_ok=True)
    (root / "sums" / "spec.py").write_text(spec)
    for name, text in {**FILES, **{f"{stem}.py": text for stem, text in changes.items()}}.items():
        (root / name).write_text(text)
    return root


def of_case(root: Path, case: Case = CASE) -> str:
    return digest.case_digest(root, root / "sums" / "spec.py", case)


@pytest.fixture
def before(tmp_path):
    return of_case(write(tmp_path / "before"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # a comment", ""),
        ("# a comment", "# another"),
        ('"""Row sums."""', '"""Sums of rows."""'),
        ('    """Uniform."""\n', ""),
        ('"""Uniform."""', '"""Even."""'),
        ("return generator * LOW", "return (generator *\n        LOW)"),
        ("flop_count(N),", "2 * flop_count(N),"),
        ("Traffic(N, N)", "Traffic(N, 2 * N)"),
        ("(dict(N=4),)", "(dict(N=4), dict(N=8))"),
        ("in (1, 2)", "in (1, 2, 3)"),
        ("Tolerance(1e-6, 1e-6)", "Tolerance(1e-5, 1e-6)"),
        ("UNUSED = 3", "UNUSED = 4"),
        ('dtypes=("float32",)', 'dtypes=("float32", "float16")'),
    ],
)
def test_words_shapes_costs_and_tolerances_do_not_split_a_series(before, tmp_path, old, new):
    assert SPEC.count(old) == 1
    assert of_case(write(tmp_path / "after", SPEC.replace(old, new))) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return scale(x)", "return scale(x) + 1"),
        ("N * HIGH", "N * HIGH * HIGH"),
        ("LOW, HIGH = -1.0, 1.0", "LOW, HIGH = -2.0, 1.0"),
        ("STEP: float = 0.5", "STEP: float = 0.25"),
        ("data(draw", "weight(draw"),
        ("reference=reference", "reference=lambda x: x"),
    ],
)
def test_inputs_reference_and_what_they_use_do(before, tmp_path, old, new):
    assert SPEC.count(old) == 1
    assert of_case(write(tmp_path / "after", SPEC.replace(old, new))) != before


@pytest.mark.parametrize(
    ("file", "text", "same"),
    [
        ("_shared", SHARED.replace("FACTOR * x", "x * FACTOR"), False),
        ("_constants", "FACTOR = 3\n", False),
        ("_late", "def late():\n    return 1\n", False),
        ("_constants", '"""Why two."""\n\nFACTOR = 2  # two\n', True),
        ("_cost", "def flop_count(N):\n    return 2 * N\n", True),
    ],
)
def test_files_that_the_spec_imports_count_when_its_inputs_or_reference_use_them(before, tmp_path, file, text, same):
    assert (of_case(write(tmp_path / "after", **{file: text})) == before) is same


def test_dtype_and_shape_are_part_of_the_case_and_the_order_of_dimensions_is_not(tmp_path):
    root = write(tmp_path)
    cases = [("float32", {"N": 4}), ("float16", {"N": 4}), ("float32", {"N": 5}), ("float32", {"M": 4})]
    assert len({of_case(root, Case.of(*one)) for one in cases}) == 4
    assert of_case(root, Case.of("float32", {"M": 1, "N": 2})) == of_case(root, Case.of("float32", {"N": 2, "M": 1}))


def test_a_spec_written_another_way_counts_by_place_or_whole(tmp_path):
    placed = SPEC.replace("    inputs=inputs,\n    reference=reference,\n", "    inputs,\n    reference,\n")
    wide = placed.replace("(dict(N=4),)", "(dict(N=4), dict(N=8))")
    changed = placed.replace("return scale(x)", "return x")
    first, second, third = (of_case(write(tmp_path / str(i), text)) for i, text in enumerate((placed, wide, changed)))
    assert first == second != third
    built = SPEC.replace("SPEC = Operator(", "SPEC = make_operator(Operator, ").replace("inputs=inputs", "**made")
    again = built.replace("Traffic(N, N)", "Traffic(N, 2 * N)")
    assert of_case(write(tmp_path / "4", built)) != of_case(write(tmp_path / "5", again))


def test_a_star_import_counts(tmp_path):
    star = SPEC.replace("from .._shared import scale", "from .._shared import *")
    one = of_case(write(tmp_path / "1", star))
    assert of_case(write(tmp_path / "2", star, _constants="FACTOR = 4\n")) != one


# implementations


def closure_tree(root: Path, **changes: str) -> Path:
    files = {
        "sums/triton_row.py": '"""Idea."""\nfrom . import torch_eager\nfrom .._triton.rows import row\n',
        "sums/torch_eager.py": "def prepare(x):\n    return x.sum\n",
        "sums/torch_other.py": "def prepare(x):\n    return x\n",
        "_triton/rows.py": "from .deep import depth\n\n\ndef row():\n    return depth\n",
        "_triton/deep.py": "depth = 1\n",
        "sums/cuda_warp.cu": '// Idea.\n#include "../_cuda/a.cuh"\n#include <cuda.h>\n',
        "_cuda/a.cuh": '#pragma once\n  #  include "b.cuh"\n',
        "_cuda/b.cuh": "constexpr int lanes = 32;\n",
        "_cuda/unused.cuh": "",
    }
    for name, text in {**files, **changes}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def of_file(root: Path, name: str) -> str:
    return digest.implementation_digest(root, [root / name])


@pytest.mark.parametrize(
    ("implementation", "changed", "text", "same"),
    [
        ("sums/triton_row.py", "sums/torch_eager.py", "def prepare(x):\n    return 0\n", False),
        ("sums/triton_row.py", "_triton/rows.py", "def row():\n    return 2\n", False),
        ("sums/triton_row.py", "_triton/deep.py", "depth = 2\n", False),
        ("sums/triton_row.py", "_triton/deep.py", "depth = 1  # lanes\n", True),
        ("sums/triton_row.py", "sums/torch_other.py", "", True),
        ("sums/torch_eager.py", "_triton/deep.py", "depth = 2\n", True),
        ("sums/cuda_warp.cu", "_cuda/a.cuh", "#pragma once\n", False),
        ("sums/cuda_warp.cu", "_cuda/b.cuh", "constexpr int lanes = 64;\n", False),
        ("sums/cuda_warp.cu", "_cuda/unused.cuh", "int x;\n", True),
    ],
)
def test_an_implementation_is_its_import_and_include_closure(tmp_path, implementation, changed, text, same):
    first = of_file(closure_tree(tmp_path / "1"), implementation)
    assert (of_file(closure_tree(tmp_path / "2", **{changed: text}), implementation) == first) is same


def test_where_the_tree_lies_does_not_matter(tmp_path):
    deep = closure_tree(tmp_path / "some" / "where" / "else")
    assert of_file(deep, "sums/triton_row.py") == of_file(closure_tree(tmp_path / "1"), "sums/triton_row.py")


def test_a_circle_of_imports_ends(tmp_path):
    root = closure_tree(tmp_path, **{"sums/torch_eager.py": "from . import triton_row\n"})
    assert digest.closure(root, root / "sums/torch_eager.py") >= {(root / "sums/triton_row.py").resolve()}


def test_what_leaves_the_tree_or_is_not_there_is_not_part_of_it(tmp_path):
    (tmp_path / "outside.cuh").write_text("int y;\n")
    (tmp_path / "outside.py").write_text("y = 1\n")
    files = {
        "sums/cuda_warp.cu": '#include "../../outside.cuh"\n#include "missing.cuh"\n',
        "sums/torch_eager.py": "from ... import outside\nfrom . import missing\nfrom ..... import far\n",
        "sums/torch_broken.py": "def prepare(:\n",
    }
    root = closure_tree(tmp_path / "tree", **files)
    for name in files:
        assert digest.closure(root, root / name) == {(root / name).resolve()}
        before = of_file(root, name)
        (tmp_path / "outside.cuh").write_text("int z;\n")
        assert of_file(root, name) == before
    other = closure_tree(tmp_path / "other", **{"sums/torch_broken.py": "def prepare(y:\n"})
    assert of_file(other, "sums/torch_broken.py") != of_file(root, "sums/torch_broken.py")


def test_the_digest_of_real_specs_does_not_depend_on_the_process():
    """Sets and hashes are seeded anew in each process."""
    code = (
        "from groundspeed.project import find_project; t = find_project(None).tree()\n"
        "for o in t.operators():\n"
        "  print(o, t.case_digest(o, t.spec(o).bench_cases[0]))\n"
        "  print([t.implementation_digest(i) for i in t.implementations(o)])"
    )
    root = Path(__file__).resolve().parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, cwd=root, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1 and "softmax" in said.pop()


# the canonical form

SNIPPETS = st.sampled_from(
    [
        "def f(a, *, b=1, **k):\n    return [x for x in a if x]",
        "class A(B):\n    x: int = 3\n    def g(self): pass",
        "x = {None: 1, **y}",
        "lambda *a, b: (yield)",
        "f'{x!r:>{w}}'",
        "try:\n    a\nexcept E as e:\n    raise\nfinally:\n    b",
        "a[1:2, ...] += None",
        "match x:\n    case {'a': 1, **r}: y",
        "async def f():\n    async with a as b: await c",
    ]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(SNIPPETS, min_size=1, max_size=4), st.lists(SNIPPETS, min_size=1, max_size=4))
def test_two_programs_share_a_canonical_form_just_when_they_share_a_dump(first, second):
    left, right = (ast.parse("\n".join(lines)) for lines in (first, second))
    assert (digest.canonical(left) == digest.canonical(right)) is (ast.dump(left) == ast.dump(right))


@pytest.mark.parametrize(
    ("left", "right"), [("x = None", "x = ()"), ("f(a)", "f(*a)"), ("{None: 1}", "{**1}"), ("'1'", "1"), ("1", "1.0")]
)
def test_the_canonical_form_tells_apart_what_looks_alike(left, right):
    assert digest.canonical(ast.parse(left)) != digest.canonical(ast.parse(right))


def test_fields_of_a_later_python_change_nothing_while_empty():
    tree = ast.parse("def f(): pass")
    plain = digest.canonical(tree)
    function = tree.body[0]
    function._fields = (*function._fields, "type_params_of_tomorrow")
    function.type_params_of_tomorrow = []
    assert digest.canonical(tree) == plain
    assert plain == "Module(body=[FunctionDef(name='f',args=arguments(),body=[Pass()])])"


CUDA = """// A block a row.
#include <cstdint>
// nvcc: --use_fast_math
constexpr int kMost = 1'000'000;  // no literal begins here
const char kQuote = '"', *kName = "http://x /* no comment */";
/* over
   lines */
#define TWICE(x) \\
  2 * (x)
__global__ void f(float* y) { y[0] = 1.0f; }
"""


def cuda(tmp_path, text):
    file = tmp_path / "a.cu"
    file.write_text(text)
    return digest.implementation_digest(tmp_path, [file])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// A block a row.\n", "// A block a row.\n//\n// Reached: 3 µs.\n"),
        ("// no literal begins here", ""),
        ("/* over\n   lines */\n", ""),
        ("{ y[0] = 1.0f; }", "{\n\ty[0] = 1.0f;  \n}".replace("\n", " ")),
        ("#include", "\n\n#include"),
        ("// nvcc: --use_fast_math", "//   nvcc: --use_fast_math  ".replace("   nvcc", " nvcc")),
    ],
)
def test_comments_and_layout_of_a_cuda_file_are_nothing_that_runs(tmp_path, old, new):
    assert old in CUDA
    assert cuda(tmp_path, CUDA.replace(old, new)) == cuda(tmp_path, CUDA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("http://x", "http://y"),
        ("/* no comment */", ""),
        ("1'000'000", "1'000'001"),
        ("--use_fast_math", "-O1"),
        ("'\"'", "'/'"),
        ("2 * (x)", "3 * (x)"),
        ("y[0] = 1.0f;", "// y[0] = 1.0f;"),
        (" \\\n", "\n"),
    ],
)
def test_all_else_of_a_cuda_file_counts(tmp_path, old, new):
    assert old in CUDA
    assert cuda(tmp_path, CUDA.replace(old, new)) != cuda(tmp_path, CUDA)


def test_the_layout_of_a_raw_string_counts(tmp_path):
    text = 'const char* k = R"x(a // b\n  c)x"; // end\n'
    assert cuda(tmp_path, text.replace("// b", "// d")) != cuda(tmp_path, text)
    assert cuda(tmp_path, text.replace("\n  c", "\nc")) != cuda(tmp_path, text)
    assert cuda(tmp_path, text.replace("// end", "")) == cuda(tmp_path, text)
