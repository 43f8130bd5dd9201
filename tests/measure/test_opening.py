"""Loading implementations by their back end: what is skipped and refused, and what a back end knows of its file."""

from __future__ import annotations

import msgspec
import pytest

from groundspeed.backends import backend
from groundspeed.backends.base import torch_outputs, unsupported_of
from groundspeed.errors import UserError
from groundspeed.measure.bench import Fault
from groundspeed.measure.contender import Contender, prepare, refusal
from groundspeed.measure.opening import open_all
from groundspeed.measure.protocol import Side
from groundspeed.operator import Case
from groundspeed.tree import Tree
from tests.core.scratch import ADD, job, make_tree

torch = pytest.importorskip("torch")

CASE = Case.of("float32", {"N": 64})
TUNED = '''"""Tuned."""

import triton
import triton.language as tl

ONE = triton.Config({"BLOCK": 32})
configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


@triton.autotune(configs=configs, key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass


@triton.jit
def plain(x):
    pass


def helper(x):
    return x


def prepare(x):
    return lambda: x * 2
'''

SLOW = '''"""Sleeps."""

import time


def prepare(x):
    time.sleep(0.03)

    def run():
        time.sleep(0.01)
        return x * 2

    return run
'''


def opened(root, *names, **changes):
    told: list[str] = []
    changes.setdefault("implementations", names)
    return open_all(job(root, **changes), Tree(root), told.append), told


def test_each_is_announced_before_its_turn_and_one_that_raises_stops_no_other(tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_add": ADD, "torch_raises": "raise OSError('gone')\n"}})
    found, told = opened(root, "torch_add", "torch_raises", "torch_eager")
    assert told == ["torch_add", "torch_raises", "torch_eager"]
    assert found["torch_raises"] == Fault("error", "OSError: gone (double/torch_raises.py:1)")
    assert isinstance(found["torch_add"], Contender) and isinstance(found["torch_eager"], Contender)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("cuda_add.cu", "// Adds.\n", "CUDA kernels need a GPU"),
        ("triton_add", "import no_such_thing\n", "Triton needs a GPU: its interpreter is checked, never timed"),
        ("cupy_add", "import cupy\n", "CuPy needs a GPU"),
    ],
)
def test_what_needs_a_gpu_is_skipped_on_a_cpu_unread_and_says_so(tmp_path, name, text, reason):
    if name.startswith("triton"):
        pytest.importorskip("triton", reason="without Triton the reason is another")
    root = make_tree(tmp_path, {"double": {name: text}})
    stem = name.removesuffix(".cu")
    found, _ = opened(root, stem)
    assert found == {stem: Fault(None, reason)}


def test_a_missing_library_is_a_reason_with_what_to_install(monkeypatch):
    from groundspeed.backends import cupy_backend, triton_backend

    for module, name in ((cupy_backend, "cupy"), (triton_backend, "triton")):
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
        assert module.absent("cuda") == f"{name} is not installed: pip install 'groundspeed[cuda]'"


def test_without_triton_its_interpreter_is_skipped_too(monkeypatch, tmp_path):
    from groundspeed.backends import triton_backend

    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(triton_backend.importlib.util, "find_spec", lambda name: None)
    root = make_tree(tmp_path, {"double": {"triton_add": "import no_such_thing\n"}})
    found, _ = opened(root, "triton_add", check_only=True)
    assert found["triton_add"].failure is None and "triton is not installed" in found["triton_add"].reason


def test_one_that_is_excluded_is_not_read(tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_bomb": "raise SystemExit\n"}})
    found, _ = opened(root, "torch_bomb", excluded={"torch_bomb": "it killed a worker"})
    assert found == {"torch_bomb": Fault("crash", "it killed a worker")}


def test_a_back_end_that_does_not_exist_names_those_that_do(tmp_path):
    with pytest.raises(UserError, match=r"unknown back end 'cudnn': .* torch, cuda, triton, cupy"):
        backend("cudnn")
    found, _ = opened(make_tree(tmp_path, {"double": {"cudnn_scan": ADD}}), "cudnn_scan")
    assert found["cudnn_scan"].failure == "error" and "unknown back end 'cudnn'" in found["cudnn_scan"].reason


def test_sides_of_a_comparison_come_from_their_own_trees_under_their_labels(tmp_path):
    base = make_tree(tmp_path / "base", {"double": {"torch_add": ADD.replace("x + x", "x + 3")}})
    head = make_tree(tmp_path / "head", {"double": {"torch_add": ADD.replace("x + x", "x + 5")}})
    sides = tuple(
        Side(f"{name}/torch_add", str(root), f"opening_{name}", "torch_add", (CASE.label,))
        for name, root in (("base", base), ("head", head))
    )
    labels = tuple(side.label for side in sides)
    found, told = opened(head, sides=sides, implementations=labels)
    assert tuple(told) == labels == tuple(one.name for one in found.values())
    x = torch.zeros(2)
    assert [float(prepare(one, {"x": x}, "cpu").call()[0][0]) for one in found.values()] == [3.0, 5.0]
    left, _ = opened(head, sides=sides, implementations=labels[1:])  # the other has killed a worker
    assert tuple(left) == labels[1:]


def test_prepare_and_the_first_run_are_timed_apart_and_run_reads_live_buffers(tmp_path):
    found, _ = opened(make_tree(tmp_path, {"double": {"torch_slow": SLOW}}), "torch_slow")
    x = torch.ones(4)
    ready = prepare(found["torch_slow"], {"x": x}, "cpu")
    assert ready.prepare_ns >= 3e7 and 1e7 <= ready.first_run_ns < 1e9
    x.fill_(4.0)
    assert torch.equal(ready.call()[0], torch.full((4,), 8.0))


def test_a_refusal_is_asked_with_dtype_and_shape_and_given_as_text(tmp_path):
    text = "def unsupported(dtype, N):\n    return KeyError(dtype) if N > 64 else None\n\n\n" + ADD
    found, _ = opened(make_tree(tmp_path, {"double": {"torch_picky": text}}), "torch_picky")
    assert refusal(found["torch_picky"], CASE) is None
    assert refusal(found["torch_picky"], Case.of("float32", {"N": 65})) == "'float32'"
    assert unsupported_of(None)(CASE) is None


@pytest.mark.parametrize(("output", "count"), [(1, 1), ((1, 2), 2), ([1, 2, 3], 3), ((), 0)])
def test_one_output_or_several(output, count):
    assert len(torch_outputs(output)) == count


# what the Triton back end knows of a file


@pytest.fixture
def triton_module(tmp_path):
    pytest.importorskip("triton", reason="Triton is needed")
    tree = Tree(make_tree(tmp_path, {"double": {"triton_tuned": TUNED}}))
    return tree, tree.load("double.triton_tuned")


def test_its_own_kernels_are_the_jitted_ones_under_their_decorators(triton_module):
    from groundspeed.backends import triton_backend

    tree, _ = triton_module
    contender = triton_backend.open_implementation(tree, tree.implementation("double", "triton_tuned"))
    assert contender.own_kernels() == {"tuned", "plain"}
    assert contender.tuned() == "" and contender.resources() == ()


def test_equal_kernels_take_over_what_the_other_side_learnt(triton_module):
    from groundspeed.backends import triton_backend

    tree, module = triton_module
    one = triton_backend.open_implementation(tree, tree.implementation("double", "triton_tuned"))
    module.tuned.cache[(64, "fp32")] = module.configs[1]
    module.tuned.cache[(64, object())] = module.configs[1]  # no key that another process could have
    learnt = msgspec.json.decode(msgspec.json.encode(one.tuning()))
    assert learnt == {"double.triton_tuned.tuned": [[[64, "fp32"], str(module.configs[1])]]}
    module.tuned.cache.clear()
    module.tuned.cache[(32, "fp32")] = module.configs[0]
    one.adopt_tuning(learnt)
    later = [[[32, "fp32"], str(module.configs[1])], [[8, "fp32"], "no such one"]]
    one.adopt_tuning({"unknown": [], "double.triton_tuned.tuned": later})
    assert module.tuned.cache == {(64, "fp32"): module.configs[1], (32, "fp32"): module.configs[0]}


def test_the_interpreter_gets_one_configuration(triton_module):
    from groundspeed.backends import triton_backend

    tree, module = triton_module
    assert len(module.tuned.configs) == 2
    triton_backend._one_configuration(tree)
    assert [str(one) for one in module.tuned.configs] == [str(module.configs[0])]


@pytest.mark.parametrize(("value", "on"), [("", False), ("0", False), ("1", True), ("true", True)])
def test_whether_the_interpreter_is_on(monkeypatch, value, on):
    from groundspeed.backends.triton_backend import interpreting

    monkeypatch.setenv("TRITON_INTERPRET", value)
    assert interpreting() is on
    monkeypatch.delenv("TRITON_INTERPRET")
    assert interpreting() is False
