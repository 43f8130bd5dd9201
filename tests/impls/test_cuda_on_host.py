"""CUDA implementations on the CPU: their .cu files by g++, threads, warps and copies by a model of them.

What nvcc and a GPU add to that, nothing here knows: its compiler, races that depend on timing, tensor cores' rounding.
Left out are those that need Hopper's own instructions, libraries of CUDA C++, several GPUs, or return more than one
tensor.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch

from groundspeed.backends.base import unsupported_of
from groundspeed.operator import Case
from tests.impls.host_nvcc import Operators, Order, compiled
from tests.impls.judge import TREE, accepted, reference, tensors
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="compiles kernels for the CPU: no g++ here")

IMPLEMENTATIONS = (
    "attention/cuda_flash",
    "attention_decode/cuda_split",
    "conv_bn_relu_add/cuda_implicit",
    "matmul/cuda_mma",
    "resnet_bottleneck/cuda_block",
    "resnet_bottleneck/cuda_fused",
)
BLOCK = "resnet_bottleneck/cuda_block"
ORDERS = [Order(backwards, eager) for backwards in (False, True) for eager in (False, True)]
WALKS = [  # shape, multiprocessors: several tiles a block, the taps' rows between them, a last tile that is not whole
    ({"N": 2, "C": 64, "E": 256, "H": 16, "W": 24}, 1),
    ({"N": 2, "C": 64, "E": 128, "H": 12, "W": 56}, 2),
    ({"N": 30, "C": 64, "E": 64, "H": 4, "W": 8}, 1),  # tiles across many images
    ({"N": 5, "C": 33, "E": 50, "H": 200, "W": 1}, 2),
    ({"N": 1, "C": 20, "E": 64, "H": 6, "W": 160}, 2),  # taps of the second block reach beyond a tile before it
    ({"N": 3, "C": 40, "E": 72, "H": 8, "W": 8}, 7),  # fewer tiles than multiprocessors
]
ELSEWHERE = [  # shape, elements that x begins beside a multiple of 16 bytes
    ({"N": 2, "C": 64, "E": 64, "H": 8, "W": 8}, 1),
    ({"N": 1, "C": 65, "E": 72, "H": 8, "W": 8}, 0),  # too many channels between the convolutions
    ({"N": 1, "C": 16, "E": 1024, "H": 8, "W": 8}, 0),  # more weights than shared memory holds
    ({"N": 1, "C": 8, "E": 24, "H": 1, "W": 1000}, 0),  # more rows
    ({"N": 2, "C": 16, "E": 24, "H": 6, "W": 6}, 0),  # planes of no whole groups
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The compiled file of an implementation, once for all tests."""
    made: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in made:
            made[name] = compiled(ROOT / "impls" / f"{name}.cu", tmp_path_factory.mktemp("host") / "code")
        return made[name]

    return of


def answer(library, name: str, inputs: dict[str, torch.Tensor], **more: Any) -> tuple[torch.Tensor, int]:
    """What an implementation makes of inputs, and by how many launches."""
    ops = Operators(library(name), **{"order": Order(), **more})
    prepare = getattr(companion(name), "prepare", None)
    out = ops.run(*inputs.values()) if prepare is None else prepare(ops, **inputs)()
    return out, ops.launches


def companion(name: str) -> Any:
    """The Python file beside an implementation's, or None."""
    operator, _, stem = name.partition("/")
    there = (ROOT / "impls" / operator / f"{stem}.py").is_file()
    return TREE.load(f"{operator}.{stem}") if there else None


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_check_case_is_right(library, name):
    spec, unsupported = TREE.spec(name.partition("/")[0]), unsupported_of(companion(name))
    cases = [case for case in spec.check_cases if unsupported(case) is None]
    assert {"float16", "bfloat16"} <= {case.dtype for case in cases}
    for case in cases:
        inputs = tensors(spec, case)
        out, _ = answer(library, name, inputs)
        assert accepted(spec, case, out, reference(spec, inputs)), case.label


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(("shape", "processors"), WALKS)
def test_a_block_that_walks_down_tiles_is_right_in_whatever_order_warps_run(library, shape, processors, order):
    """Copies are done at once, or as late as waits allow: neither may matter."""
    spec, case = TREE.spec("resnet_bottleneck"), Case.of("float16", shape)
    inputs = tensors(spec, case)
    out, launches = answer(library, BLOCK, inputs, order=order, processors=processors)
    assert launches == 1
    assert accepted(spec, case, out, reference(spec, inputs))


@pytest.mark.parametrize(("shape", "offset"), ELSEWHERE)
def test_what_one_launch_does_not_take_goes_by_three(library, shape, offset):
    spec, case = TREE.spec("resnet_bottleneck"), Case.of("bfloat16", shape)
    inputs = tensors(spec, case)
    out, launches = answer(library, BLOCK, inputs, offset=offset)
    assert launches == 3
    assert accepted(spec, case, out, reference(spec, inputs))


def test_nan_stays_where_it_is(library):
    """The pixels of an image that do not see it do not change, nor do other images."""
    spec, case = TREE.spec("resnet_bottleneck"), Case.of("float16", {"N": 3, "C": 64, "E": 64, "H": 8, "W": 8})
    inputs = tensors(spec, case)
    clean, _ = answer(library, BLOCK, inputs, processors=1)
    inputs["x"][1, 5, 3, 4] = torch.nan
    out, _ = answer(library, BLOCK, inputs, processors=1)
    touched = torch.zeros_like(out, dtype=torch.bool)
    touched[1, :, 2:5, 3:6] = True
    assert torch.isnan(out[touched]).all()
    assert torch.equal(out[~touched], clean[~touched])
