"""Whether a file uses torch.compile is read from its code, not from what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundspeed.measure.compiler_use import uses_compiler

IMPLS = Path(__file__).resolve().parents[2] / "impls"

USES = {
    "call": "import torch\ncompiled = torch.compile(abs)",
    "decorator": "import torch\n\n@torch.compile\ndef f(x):\n    return x",
    "inside": "def prepare(x):\n    import torch\n\n    return torch.compile(abs, dynamic=False)",
    "alias": "import torch as t\nt.compile(abs)",
    "from": "from torch import compile",
    "renamed": "from torch import compile as faster",
    "star": "from torch import *\ncompile(abs)",
    "of a submodule's import": "import torch.nn\ntorch.compile(abs)",
    "its front end": "import torch._dynamo",
    "a part of it": "from torch._dynamo import config",
    "as an attribute": "import torch\ntorch._dynamo.config.cache_size_limit = 64",
    "its back end": "from torch import _inductor",
    "a part of that": "import torch._inductor.config as config",
    "a module's own": "from torch import nn\nnn.Linear(2, 2).compile()",
    "of what nobody knows": "def f(model):\n    model.layers[0].compile()",
    "no Python": "def f(:\n    # compile",
    "no text": "compile = '\0'",
}
DOES_NOT = {
    "docstring": '"""Beside torch.compile, which makes one kernel of it."""\nimport torch',
    "comment": "import torch  # torch.compile, torch._dynamo and torch._inductor are elsewhere",
    "string": "import torch\nsaid = 'torch.compile(x)'",
    "regular expression": "import re\nre.compile('x')",
    "another's": "import tvm\nimport cutlass.cute as cute\ntvm.compile(1)\ncute.compile[2](3)\ntvm.driver.compile()",
    "Python's own": "compile('1', 'x', 'eval')",
    "a neighbour's": "from .torch import compile as c\nfrom .._jax.exchange import compiled\nfrom . import _inductor",
    "a name like it": "import torch\ntorch.compiled = torch.compiler.is_compiling()",
    "plain": "import torch",
}


def file(folder: Path, text: str, name: str = "torch_one.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", USES.values(), ids=USES)
def test_code_that_does(text, tmp_path):
    assert uses_compiler([file(tmp_path, text)])


@pytest.mark.parametrize("text", DOES_NOT.values(), ids=DOES_NOT)
def test_words_that_do_not(text, tmp_path):
    assert not uses_compiler([file(tmp_path, text)])


def test_one_of_several_is_enough_and_cuda_is_not_looked_at(tmp_path):
    cuda = file(tmp_path, "// torch.compile", "cuda_one.cu")
    plain, compiled = file(tmp_path, "x = 1", "torch_a.py"), file(tmp_path, USES["call"], "torch_b.py")
    assert uses_compiler([cuda, plain, compiled]) and not uses_compiler([cuda, plain])


def test_the_suites_own():
    found = {path for path in IMPLS.rglob("*.py") if uses_compiler([path])}
    assert found == {path for path in IMPLS.rglob("*.py") if path.name.startswith("torch_compile")}
