"""PyTorch's other ways to compute, TorchScript and the back ends of SDPA, on the CPU where they have a path for it."""

from __future__ import annotations

import pytest
import torch

from tests.backends.live import implementations, label, wrong_cases
from tests.impls.judge import TREE

SCRIPTED = [one for one in implementations("torch") if one.name == "torch_jit"]
# Without attention_backward, one of whose outputs may be zeros, which the plain tolerance of the tests wants exactly.
OPERATORS = ("attention", "attention_decode")
SDPA = [one for one in implementations("torch") if one.name.startswith("torch_sdpa_") and one.operator in OPERATORS]
NEED_A_GPU = ("torch_sdpa_cudnn", "torch_sdpa_efficient")


def test_there_are_some():
    scripted = {"normalize_color", "relu", "scale_relu", "select_fused", "silu"}
    assert {one.operator for one in SCRIPTED} == scripted
    for operator in OPERATORS:
        kinds = {one.name.removeprefix("torch_sdpa_") for one in SDPA if one.operator == operator}
        assert kinds == {"cudnn", "efficient", "flash", "math"}


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize("implementation", SCRIPTED, ids=label)
def test_a_scripted_function_is_right_on_the_live_inputs_without_a_word_on_torchscript(implementation):
    wrong, right = wrong_cases(implementation)
    assert not wrong and right >= 7


def test_a_torch_without_torchscript_declines_by_its_version(monkeypatch):
    unsupported = TREE.load("silu.torch_jit").unsupported
    assert unsupported("float32", N=3) is None and "two roundings" in unsupported("float16", N=3)
    monkeypatch.delattr(torch.jit, "script")
    for operator in ("relu", "scale_relu", "select_fused", "silu"):
        reason = TREE.load(f"{operator}.torch_jit").unsupported("float32", N=3)
        assert reason == f"torch {torch.__version__} has no torch.jit.script"


@pytest.mark.skipif(torch.cuda.is_available(), reason="is of a machine without a GPU")
@pytest.mark.parametrize("implementation", SDPA, ids=label)
def test_a_back_end_of_sdpa_is_right_on_the_live_inputs_or_says_that_it_needs_a_gpu(implementation):
    wrong, right = wrong_cases(implementation)
    assert not wrong and (right == 0) == (implementation.name in NEED_A_GPU)


def test_each_case_has_an_executor_of_its_own():
    scripted = TREE.load("_torch.scripted").scripted
    relu = TREE.load("relu.torch_eager").relu
    x = torch.randn(8)
    one, other = scripted(relu, x), scripted(relu, x)
    assert one.qualified_name != other.qualified_name and torch.equal(one(x), other(x))
    names = {torch.jit.script(relu).qualified_name for _ in range(2)}
    assert len(names) == 1, "torch alone compiles a function once"
