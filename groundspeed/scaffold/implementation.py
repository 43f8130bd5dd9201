"""Skeletons of an implementation, one template a back end, written around the inputs that the spec names.

Each launches a real kernel on the first input, or calls torch, and returns memory of that input's shape that holds no
answer: NaN from a kernel, and from torch whatever the allocator gave, which the referee has poisoned. Those of
libraries are in ``libraries``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from string import Template

from groundspeed.scaffold.libraries import SKELETONS

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

$signature {
  const auto launch = [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    $kernel<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  };
  return elementwise($first, "$kernel", launch);
}

}  // namespace

$registration
"""

_WIDTH = 118  # of a line that something may yet stand behind
_SHORT = 19  # letters
_TEMPLATES = {"torch": _TORCH, "cuda": _CUDA, "triton": _TRITON, "cupy": _CUPY}
_NEEDS = {"cuda": "_cuda/elementwise.cuh", "cupy": "_cupy/dtypes.py"}


def suffix_of(backend: str) -> str:
    """Of a back end's files."""
    return SUFFIXES.get(backend, ".py")


def need_of(backend: str) -> str:
    """The file that a back end's skeleton uses of the tree that it is written to; empty where it needs none."""
    return SKELETONS[backend].needs if backend in SKELETONS else _NEEDS.get(backend, "")


def implementation_text(
    operator: str, name: str, inputs: Sequence[str], idea: str = _IDEA, spread: bool = False
) -> str:
    """The file of an implementation ``<backend>_<idea>`` of an operator with these inputs, at least one.

    ``spread`` is for an operator over several GPUs: the inputs are then one rank's.
    """
    backend, _, idea_name = name.partition("_")
    skeleton = SKELETONS.get(backend)
    rest = _REST.replace("\n", "\n// ") if suffix_of(backend) == ".cu" else _REST
    return Template(_TEMPLATES[backend] if skeleton is None else skeleton.text).substitute(
        idea=idea,
        rest=rest,
        kernel=f"{operator}_{idea_name}",
        inputs=", ".join(inputs),
        signature=_signature(inputs),
        registration=_registration(inputs),
        first=inputs[0],
        wanted=_wanted(inputs, "" if skeleton is None else skeleton.by, spread),
    )


def _signature(inputs: Sequence[str]) -> str:
    """Of the host function in C++."""
    return "\n           ".join(_lines(f"Tensor run({_parameters(inputs)})"))


def _registration(inputs: Sequence[str]) -> str:
    """The host function's schema, as torch reads it."""
    schema = f"run({_parameters(inputs)}) -> Tensor"
    line = f'GROUNDSPEED_OPERATOR("{schema}", run)'
    if len(line) <= _WIDTH:
        return line
    return "\n".join(["GROUNDSPEED_OPERATOR(", *(f'    "{part} "' for part in _lines(schema))])[:-2] + '",\n    run)'


def _parameters(inputs: Sequence[str]) -> str:
    return ", ".join(f"Tensor {name}" for name in inputs)


def _lines(text: str) -> list[str]:
    """Cut behind commas."""
    kept = text.replace("Tensor ", "Tensor\N{NO-BREAK SPACE}").replace(" ->", "\N{NO-BREAK SPACE}->")
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(kept, _WIDTH - 11)]


def _wanted(inputs: Sequence[str], by: str, spread: bool) -> str:
    """What the marked line asks for: it names the inputs where they are few."""
    source = " and ".join(filter(None, (", ".join(inputs[:-1]), inputs[-1])))
    source = source if len(source) <= _SHORT else f"the {len(inputs)} inputs"
    ranks = " of all ranks" if spread else ""
    how = f" by {by}" if by else ""
    return f"compute y from {source}{ranks}{how}, then delete this line"
