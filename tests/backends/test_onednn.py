"""oneDNN on the CPU: every onednn_* implementation against its oracle, and what each leaves out."""

from __future__ import annotations

import pytest
import torch

from tests.backends.live import implementations, label, wrong_cases
from tests.impls.judge import TREE

IMPLEMENTATIONS = implementations("onednn")
# How many check shapes each answers: those with elements. It does in float32, and where the CPU can in bfloat16.
SHAPES = {
    "conv_bn_relu_add/onednn_folded": 6,
    "matmul_gelu/onednn_epilogue": 7,
    "qkv_projection/onednn_linear": 7,
    "swiglu_mlp/onednn_swish": 6,
}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=label)
def test_is_right_on_every_check_case_that_it_takes_and_reads_the_live_inputs(implementation):
    both = implementation.name != "onednn_folded" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert wrong_cases(implementation) == ([], SHAPES[label(implementation)] * (2 if both else 1))


def test_none_is_left_out():
    assert set(map(label, IMPLEMENTATIONS)) == set(SHAPES)


def test_a_cpu_that_cannot_multiply_bfloat16_skips_it_with_the_reason(monkeypatch):
    unsupported = TREE.load("_onednn.linear").unsupported
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert unsupported("bfloat16", M=2, N=3) == "torch's oneDNN multiplies no bfloat16 on this CPU"
    assert unsupported("float32", M=2, N=3) is None
