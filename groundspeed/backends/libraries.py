"""The libraries that implementations may be written with, by the name that such an implementation begins with.

What each of them runs, and what stopped those that are not here, is in docs/backends.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from groundspeed.backends.library import Conflict, Library

_ANYWHERE = frozenset({"cuda", "cpu"})
# Else XLA's first array takes three quarters of the GPU, and every other implementation runs out of memory.
_XLA = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def _onednn() -> str:
    """As torch says what it was built with, "Intel(R) MKL-DNN v3.12.0 (Git Hash …)"; empty where it does not."""
    import torch

    found = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return found.group(1) if found else ""


LIBRARIES: Mapping[str, Library] = {
    "jax": Library(
        title="JAX",
        distribution="jax",
        beside=("jaxlib",),
        extra="jax",
        devices=_ANYWHERE,
        environment=_XLA,
        own_memory="XLA allocates for itself, where torch does not count",
    ),
    "liger": Library(title="Liger-Kernel", distribution="liger-kernel", extra="liger"),
    "flaggems": Library(title="FlagGems", distribution="flag-gems", extra="flaggems"),
    "quack": Library(title="QuACK", distribution="quack-kernels", beside=("nvidia-cutlass-dsl",), extra="quack"),
    "flashattn": Library(
        title="FlashAttention 4", distribution="flash-attn-4", beside=("nvidia-cutlass-dsl",), extra="flashattn"
    ),
    "numba": Library(
        title="numba-cuda",
        distribution="numba-cuda",
        beside=("numba",),
        extra="numba",
        conflicts=(Conflict("numba-cuda<=0.30.4", "numpy>=2.5", "it asks for numpy.row_stack, which is gone"),),
        environment={"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"},  # else it counts the blocks of every launch
    ),
    "warp": Library(title="NVIDIA Warp", distribution="warp-lang", extra="warp"),
    "cutile": Library(title="cuda.tile", distribution="cuda-tile", beside=("nvidia-cuda-tileiras",), extra="cutile"),
    "cutlass": Library(
        title="CUTLASS's CuTe DSL", distribution="nvidia-cutlass-dsl", beside=("apache-tvm-ffi",), extra="cutlass"
    ),
    "tvm": Library(title="TVM", distribution="apache-tvm", beside=("apache-tvm-ffi",), extra="tvm"),
    "iree": Library(
        title="IREE",
        distribution="iree-base-runtime",
        beside=("iree-base-compiler", "jax"),
        extra="iree",
        devices=_ANYWHERE,
        environment=_XLA,  # its functions are lowered by JAX
        own_memory="IREE allocates for itself, where torch does not count",
    ),
    # Part of torch's builds for CPUs, and so are its functions, which torch's own compiler calls.
    "onednn": Library(
        title="oneDNN", distribution="torch", extra="", devices=frozenset({"cpu"}), inside={"onednn": _onednn}
    ),
    "nvmath": Library(title="nvmath-python", distribution="nvmath-python", extra="nvmath"),
}


def versions(backends: Iterable[str]) -> dict[str, str]:
    """Versions of what is behind these back ends, by its name; of those that are libraries and installed.

    Of what is a part of torch, torch is asked: call it where that is imported.
    """
    found: dict[str, str] = {}
    for name in backends:
        if name in LIBRARIES:
            found |= LIBRARIES[name].versions()
    return dict(sorted(found.items()))
