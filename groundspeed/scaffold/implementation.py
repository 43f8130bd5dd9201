"""Skeletons of an implementation, one template a back end, written around the inputs that the spec names.

Each launches a real kernel on the first input, or calls torch, and returns memory of that input's shape that holds no
answer: NaN from a kernel, and from torch whatever the allocator gave, which the referee has poisoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

SUFFIXES = {"torch": ".py", "cuda": ".cu", "triton": ".py", "cupy": ".py"}

_IDEA = "The idea in one sentence: what this does that the other implementations do not."
_REST = (
    "What bounds it, the bytes it moves and the operations it does, and what the idea is predicted to bring.\n"
    "Say which of these are predictions: measured figures come from results alone."
)

_TORCH = '''"""$idea

$rest
"""

import torch


def prepare($inputs):
    # Not timed: compile here, tune, convert weights.

    def run():
        # groundspeed new: $wanted
        y = torch.empty_like($first)
        return y

    return run
'''

_TRITON = '''"""$idea

$rest
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def $kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    # groundspeed new: $wanted
    y = x * float("nan")
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare($inputs):
    # Not timed: tune here, convert weights.

    def run():
        source = $first.contiguous()
        y = torch.empty_like(source)
        if y.numel():
            $kernel[(triton.cdiv(y.numel(), BLOCK),)](source, y, y.numel(), BLOCK=BLOCK)
        return y

    return run
'''

_CUPY = '''"""$idea

$rest
"""

import cupy
import numpy

from .._cupy.dtypes import C_TYPES, CONVERSIONS, unsupported

__all__ = ["prepare", "unsupported"]

BLOCK = 256

SOURCE = r"""
template <typename T>
__global__ void $kernel(const T* __restrict__ x, T* __restrict__ y, long long size) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  // groundspeed new: $wanted
  if (i < size) put(y + i, as_float(x[i]) * __int_as_float(0x7fffffff));
}
"""


def prepare($inputs):
    # Not timed: compile here, convert weights.
    name = f"$kernel<{C_TYPES[$first.dtype.name]}>"
    module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=(name,))
    kernel = module.get_function(name)

    def run():
        source = cupy.ascontiguousarray($first)
        y = cupy.empty_like(source)
        if y.size:
            kernel((-(-y.size // BLOCK),), (BLOCK,), (source, y, numpy.int64(y.size)))
        return y

    return run
'''

_CUDA = """// $idea
//
// $rest
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename T>
__global__ void $kernel(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  const int64_t i = global_thread();
  // groundspeed new: $wanted
  if (i < size) y[i] = from_float<T>(to_float(x[i]) * __int_as_float(0x7fffffff));
}

Tensor run($tensors) {
  return elementwise($first, "$kernel", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    $kernel<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run($tensors) -> Tensor", run)
"""

_TEMPLATES = {"torch": _TORCH, "cuda": _CUDA, "triton": _TRITON, "cupy": _CUPY}


def suffix_of(backend: str) -> str:
    """Of a back end's files."""
    return SUFFIXES.get(backend, ".py")


def implementation_text(operator: str, name: str, inputs: Sequence[str], idea: str = _IDEA) -> str:
    """The file of an implementation ``<backend>_<idea>`` of an operator with these inputs, at least one.

    A library's gets torch's tensors, so it begins as torch's do.
    """
    backend, _, idea_name = name.partition("_")
    rest = _REST.replace("\n", "\n// ") if suffix_of(backend) == ".cu" else _REST
    return Template(_TEMPLATES.get(backend, _TORCH)).substitute(
        idea=idea,
        rest=rest,
        kernel=f"{operator}_{idea_name}",
        inputs=", ".join(inputs),
        tensors=", ".join(f"Tensor {name}" for name in inputs),
        first=inputs[0],
        wanted=f"compute y from {_listed(inputs)}, then delete this line",
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
