"""Base's and head's copies of one implementation run side by side in one process, each from its own source.

Every copy is the same but for one number, planted in a file that it imports or includes: the outputs must show it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from groundspeed import build
from groundspeed.tree import Tree
from tests.core.scratch import SPEC
from tests.paths import python_path

ROOT = Path(__file__).resolve().parents[2]

EAGER = '"""Adds."""\n\nfrom .._shared.planted import PLANTED\n\n\ndef prepare(x):\n    return lambda: x + PLANTED\n'
TRITON = '''"""Adds in a kernel."""

import torch
import triton
import triton.language as tl

from . import torch_eager
from .._shared.planted import PLANTED


@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + KERNEL_PLANTED, mask=at < n)


def prepare(x):
    def run():
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
        assert torch.equal(out, torch_eager.prepare(x)())
        return out

    return run
'''
CUDA = """// Returns it.
#include "../_cuda/planted.cuh"
extern "C" __attribute__((visibility("default"))) int answer() { return planted(); }
"""


def plant(root: Path, number: int) -> Tree:
    files = {
        "double/spec.py": SPEC,
        "double/torch_eager.py": EAGER,
        "double/triton_add.py": TRITON.replace("KERNEL_PLANTED", str(number)),
        "double/cuda_add.cu": CUDA,
        "_shared/planted.py": f"PLANTED = {number}\n",
        # An inline function and its static are symbols that the linker would share between two libraries.
        "_cuda/planted.cuh": f"inline int planted() {{ static int number = {number}; return number; }}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Tree(root)


def run_both(tmp_path: Path) -> dict[str, object]:
    """Load and run everything of both trees in a process of their own, as the gate's worker does."""
    code = textwrap.dedent("""
        import json, sys
        from pathlib import Path
        import torch
        from groundspeed.measure.contender import open_contender
        from groundspeed.tree import Tree

        path, finders, namespaces = list(sys.path), list(sys.meta_path), sorted(sys.modules)
        roots = [Path(name) for name in sys.argv[1:]]
        x = torch.zeros(3)
        said = {}
        for name in ("torch_eager", "triton_add"):
            runs = []
            for root in roots:
                tree = Tree(root)
                contender = open_contender(tree, tree.implementation("double", name))
                runs.append(contender.opened.prepare({"x": x}))
            # In turns, after both are loaded: whichever was loaded last must not have taken over.
            said[name] = [[float(run()[0]) for run in runs] for _ in range(2)]
        said["packages"] = [Tree(root).package for root in roots]
        said["modules"] = {
            name: module.__file__ for name, module in sys.modules.items()
            if getattr(module, "__file__", None) and any(str(root) in module.__file__ for root in roots)
        }
        said["unnamed"] = [n for n in sys.modules if n.split(".")[0] in ("impls", "double", "_shared", "planted")]
        said["path_kept"] = path == sys.path and finders == sys.meta_path
        print(json.dumps(said))
    """)
    roots = [str(plant(tmp_path / name, number).root) for name, number in (("base", 3), ("head", 5))]
    done = subprocess.run(
        [sys.executable, "-c", code, *roots],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout.splitlines()[-1]), "roots": roots}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    pytest.importorskip("triton", reason="Triton's interpreter is needed")
    return run_both(tmp_path_factory.mktemp("trees"))


@pytest.mark.parametrize("name", ["torch_eager", "triton_add"])
def test_each_runs_its_own_source(both, name):
    assert both[name] == [[3.0, 5.0], [3.0, 5.0]]


def test_relative_imports_resolve_in_their_own_tree_and_nothing_has_a_shared_name(both):
    base, head = both["packages"]
    assert base != head and both["unnamed"] == [] and both["path_kept"]
    by_package = {base: both["roots"][0], head: both["roots"][1]}
    for name, file in both["modules"].items():
        assert file.startswith(by_package[name.split(".")[0]] + os.sep), name
    for package in (base, head):
        assert {f"{package}._shared.planted", f"{package}.double.triton_add"} <= set(both["modules"])


def test_digests_keys_and_namespaces_differ_where_the_planted_file_does(tmp_path):
    trees = [plant(tmp_path / name, number) for name, number in (("base", 3), ("head", 5), ("same", 3))]
    tool = build.Toolchain(Path("nvcc"), "13.0", tmp_path, "2.11", "9.0")
    for name in ("torch_eager", "triton_add", "cuda_add"):
        base, head, same = (tree.implementation_digest(tree.implementation("double", name)) for tree in trees)
        assert base == same != head
    keys = [build.cache_key(tree.root, tree.root / "double/cuda_add.cu", tool) for tree in trees]
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.skipif(build._find_nvcc() is None, reason="nvcc is not installed")
def test_two_builds_of_one_cuda_file_are_loaded_side_by_side(tmp_path):
    toolchain = build.find_toolchain()
    libraries = []
    for name, number in (("base", 3), ("head", 5)):
        tree = plant(tmp_path / name, number)
        built = build.build(tree.root, tree.root / "double/cuda_add.cu", toolchain, tmp_path / "cache")
        libraries.append((number, built))
    assert libraries[0][1].namespace != libraries[1][1].namespace
    code = (
        "import ctypes, sys\n"
        "mode = getattr(ctypes, sys.argv[1])\n"
        "loaded = [ctypes.CDLL(path, mode=mode) for path in sys.argv[2:]]\n"
        "print([library.answer() for library in loaded])\n"
    )
    for mode in ("RTLD_LOCAL", "RTLD_GLOBAL"):
        done = subprocess.run(
            [sys.executable, "-c", code, mode, *(str(built.binary) for _, built in libraries)],
            env={**os.environ, "LD_LIBRARY_PATH": str(toolchain.torch_root / "lib")},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == "[3, 5]", (mode, done.stderr)


@pytest.mark.gpu
def test_two_versions_of_a_cuda_operator_answer_side_by_side(tmp_path):
    import torch

    from groundspeed.measure.contender import open_contender

    source = """// Adds a number of its own.
#include "../_cuda/torch_stable.cuh"
#include "../_cuda/planted.cuh"
namespace {
__global__ void add(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + PLANTED;
}
using groundspeed::Tensor;
Tensor run(Tensor x) {
  Tensor y = torch::stable::empty_like(x);
  const int n = static_cast<int>(x.numel());
  add<<<(n + 255) / 256, 256, 0, groundspeed::current_stream(x)>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), n);
  groundspeed::check_launch("add");
  return y;
}
}  // namespace
GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
"""
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    runs = []
    for name, number in (("base", 3), ("head", 5)):
        tree = plant(tmp_path / name, number)
        header = (ROOT / "impls" / "_cuda" / "torch_stable.cuh").read_text()
        (tree.root / "_cuda" / "torch_stable.cuh").write_text(header)
        (tree.root / "_cuda" / "planted.cuh").write_text(f"#define PLANTED {number}\n")
        (tree.root / "double" / "cuda_add.cu").write_text(source)
        runs.append(open_contender(tree, tree.implementation("double", "cuda_add")).opened.prepare({"x": x}))
    for _ in range(2):
        for run, number in zip(runs, (3, 5), strict=True):
            assert torch.equal(run(), x + number)
