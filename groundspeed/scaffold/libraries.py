"""Skeletons of implementations by a library: the library itself at work on the first input, its result NaN.

Where a library offers finished functions instead of a language to write one in, which of them is what there is to
choose: such a skeleton imports it and calls torch until then. ``groundspeed new`` names a finished file as a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_HEADER = '''"""$idea

$rest
"""

'''

_JAX = """import jax.numpy as jnp

from .._jax.exchange import compiled


def $kernel($inputs):
    # groundspeed new: $wanted
    return $first * jnp.nan


def prepare($inputs):
    # Not timed: compile here, convert weights.
    return compiled($kernel, $inputs)
"""

_IREE = """import jax.numpy as jnp

from .._iree.module import compiled, unsupported

__all__ = ["prepare", "unsupported"]


def $kernel($inputs):
    # groundspeed new: $wanted
    return $first * jnp.nan


def prepare($inputs):
    # Not timed: compile here, convert weights.
    return compiled($kernel, $inputs)
"""

_NUMBA = """import math

from numba import cuda, float32

from .._numba.launch import elementwise, unsupported

__all__ = ["prepare", "unsupported"]


@cuda.jit
def $kernel(x, y):
    i = cuda.grid(1)
    if i < y.size:
        # groundspeed new: $wanted
        y[i] = float32(x[i]) * float32(math.nan)


def prepare($inputs):
    # Not timed: convert weights.

    def run():
        return elementwise($kernel, $first.reshape(-1)).view($first.shape)

    return run
"""

_WARP = """from typing import Any

import warp as wp

from .._warp.launch import elementwise


@wp.kernel
def $kernel(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    # groundspeed new: $wanted
    value = wp.float32(x[i]) * wp.NAN
    y[i] = y.dtype(value)


def prepare($inputs):
    # Not timed: convert weights.

    def run():
        return elementwise($kernel, $first.reshape(-1)).view($first.shape)

    return run
"""

_CUTILE = """import cuda.tile as ct

from .._cutile.launch import elementwise


@ct.kernel
def $kernel(x, y, TILE: ct.Constant[int]):
    block = ct.bid(0)
    tile = ct.load(x, (block,), (TILE,)).astype(ct.float32)
    # groundspeed new: $wanted
    value = tile * float("nan")
    ct.store(y, (block,), value.astype(y.dtype))


def prepare($inputs):
    # Not timed: tune here, convert weights.

    def run():
        return elementwise($kernel, $first.reshape(-1)).view($first.shape)

    return run
"""

_CUTLASS = """import cutlass
from cutlass import cute

from .._cutlass.launch import BLOCK, elementwise


@cute.kernel
def ${kernel}_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * BLOCK + thread
    if i < cute.size(x):
        # groundspeed new: $wanted
        value = x[i].to(cutlass.Float32) * cutlass.Float32(float("nan"))
        y[i] = value.to(y.element_type)


@cute.jit
def $kernel(x: cute.Tensor, y: cute.Tensor, stream):
    blocks = cute.ceil_div(cute.size(x), BLOCK)
    ${kernel}_kernel(x, y).launch(grid=(blocks, 1, 1), block=(BLOCK, 1, 1), stream=stream)


def prepare($inputs):
    # Not timed: convert weights.

    def run():
        return elementwise($kernel, $first.reshape(-1)).view($first.shape)

    return run
"""

_TVM = """import math

import torch
from tvm import te, tirx

from .._tvm.build import built, call, placeholder


def $kernel(x):
    nan = tirx.const(math.nan, x.dtype)
    # groundspeed new: $wanted
    return te.compute(x.shape, lambda *at: x(*at) * nan, name="y")


def prepare($inputs):
    # Not timed: compile here, convert weights.
    source = placeholder($first, "x")
    function = built([source], $kernel(source)) if $first.numel() else None

    def run():
        return call(function, torch.empty_like($first, memory_format=torch.contiguous_format), $first)

    return run
"""

_CALL = """$imports


def prepare($inputs):
    # Not timed: plan here, convert weights.

    def run():
        # groundspeed new: $wanted
        y = torch.empty_like($first)
        return y

    return run
"""


@dataclass(frozen=True)
class Skeleton:
    """How a file by a library begins.

    template
        The text below the header, with the names of ``implementation_text``.
    needs
        The file of the tree that it imports; empty where none.
    imports
        Of a template that calls torch until a function is chosen: torch and the library, as ruff sorts them.
    by
        Where such a function is to be looked for.
    """

    template: str
    needs: str = ""
    imports: str = "import torch"
    by: str = ""

    @property
    def text(self) -> str:
        return _HEADER + self.template.replace("$imports", self.imports)


SKELETONS: Mapping[str, Skeleton] = {
    "jax": Skeleton(_JAX, "_jax/exchange.py"),
    "iree": Skeleton(_IREE, "_iree/module.py"),
    "numba": Skeleton(_NUMBA, "_numba/launch.py"),
    "warp": Skeleton(_WARP, "_warp/launch.py"),
    "cutile": Skeleton(_CUTILE, "_cutile/launch.py"),
    "cutlass": Skeleton(_CUTLASS, "_cutlass/launch.py"),
    "tvm": Skeleton(_TVM, "_tvm/build.py"),
    "liger": Skeleton(_CALL, imports="import torch\nfrom liger_kernel import ops", by="liger_kernel.ops"),
    "flaggems": Skeleton(_CALL, imports="import flag_gems\nimport torch", by="flag_gems"),
    "quack": Skeleton(_CALL, imports="import quack\nimport torch", by="quack"),
    "flashattn": Skeleton(_CALL, imports="import torch\nfrom flash_attn.cute import interface", by="flash_attn.cute"),
    "nvmath": Skeleton(_CALL, imports="import torch\nfrom nvmath.linalg import advanced", by="nvmath.linalg.advanced"),
    "onednn": Skeleton(_CALL, by="torch.ops.mkldnn"),
}
