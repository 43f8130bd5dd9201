"""A stand-in for nvcc and torch's operators: a ``.cu`` file is compiled by g++ and run on the CPU.

Its own code runs, on the device's side and on the host's: which kernel is chosen, sizes, alignment, launches. Replaced
are the two headers in which instructions of the GPU and torch are named (host_mma.cuh, host_stable.cuh), inline PTX
that stands elsewhere (INSTRUCTIONS), ``<<<>>>`` and the declaration of dynamic shared memory. host_warps.h says how
threads run and what counts as a fault.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tests.impls.host_cupy import APPROXIMATIONS, Fault, placed
from tests.paths import ROOT

HERE = Path(__file__).parent
SHARED = ROOT / "impls" / "_cuda"
REPLACED = {"mma.cuh": "host_mma.cuh", "torch_stable.cuh": "host_stable.cuh"}
OF_CUDA = ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h")
LAUNCH = re.compile(r"(\w+(?:<[^<>;{}]*>)?)\s*<<<(.*?)>>>\(", re.DOTALL)
DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];")
ALIGNED = re.compile(r"__shared__ (alignas\([^)]*\))")
INSTRUCTIONS = {  # inline PTX outside of mma.cuh → the same of host_warps.h
    r'(?s)asm volatile\("st\.global\.v4\.u32 .*?"memory"\);': "*reinterpret_cast<uint4*>(address) = words;",
    r'asm volatile\("movmatrix.*?: "=r"\((\w+)\) : "r"\((\w+)\)\);': r"\1 = host::at_warp({host::kTranspose, \2});",
}
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-w", "-fno-strict-aliasing", "-fsanitize=alignment")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8)


class Order(NamedTuple):
    """In which order warps run, and whether asynchronous copies are done at once or as late as they may be."""

    backwards: bool = False
    eager: bool = False


class HostTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_int64 * 4),
        ("steps", ctypes.c_int64 * 4),
        ("dimensions", ctypes.c_int),
        ("type", ctypes.c_int),
    ]


def for_host(code: str) -> str:
    """CUDA C++ in which launches and dynamic shared memory are functions of host_warps.h, and approximations exact."""
    for instruction, same in (APPROXIMATIONS | INSTRUCTIONS).items():
        code = re.sub(instruction, same, code)
    code = ALIGNED.sub(r"\1 __shared__", code)
    code = DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(host::shared);", code)

    def launched(match: re.Match[str]) -> str:
        name, sizes = match.groups()
        if re.search(rf"auto {re.escape(name)} =|\(\*{re.escape(name)}\)\(", code):
            return f"host::launcher({name}, {sizes})("
        return f"host::calling([&](auto... given) {{ {name}(given...); }}, {sizes})("

    return LAUNCH.sub(launched, code)


def _copied(own: Path, folder: Path) -> None:
    for source in {path.parent for path in SHARED.parent.glob("*/*.cuh")} | {own}:
        (folder / source.name).mkdir(parents=True)
        for path in source.glob("*.cu*" if source == own else "*.cuh"):
            code = (HERE / REPLACED.get(path.name, path)).read_text()
            (folder / source.name / path.name).write_text(for_host(code))
    for path in HERE.glob("host_*.h"):
        shutil.copy(path, folder)
    for name in OF_CUDA:
        (folder / name).write_text('#include "host_warps.h"\n')
    constants = '#define CUDART_INF_F __builtin_inff()\n#define CUDART_NAN_F __builtin_nanf("")\n'
    (folder / "math_constants.h").write_text(constants)


def compiled(path: Path, folder: Path) -> Any:
    """The library of a ``.cu`` file, made in an empty folder; it may include headers of all of impls/."""
    _copied(path.parent, folder)
    source, made, library = folder / path.parent.name / path.name, folder / "made.o", folder / "made.so"
    steps: tuple[tuple[Any, ...], ...] = (
        ("-x", "c++", "-c", *FLAGS, f"-I{folder}", "-include", folder / "host_warps.h", source, "-o", made),
        ("-shared", made, "-o", library),  # not linked with what -fsanitize would add
    )
    for step in steps:
        done = subprocess.run(["g++", *map(str, step)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fault(done.stderr)
    loaded = ctypes.CDLL(str(library))
    loaded.host_run.restype = ctypes.c_char_p
    return loaded


class Operators:
    """What ``prepare`` gets as ``ops``. Raises Fault with what a kernel did wrong, or an operator refused."""

    def __init__(self, library: Any, order: Order, processors: int = 132, offset: int = 0) -> None:
        """``offset``: of the first tensor, in elements from a multiple of 16 bytes."""
        self._library, self._order, self._processors, self._offset = library, order, processors, offset
        self.launches = 0

    def run(self, *given: torch.Tensor | int) -> torch.Tensor:
        arguments = (HostTensor * len(given))()
        arrays = []
        for argument, value in zip(arguments, given, strict=True):
            if isinstance(value, torch.Tensor):
                arrays.append(placed(_bits(value).numpy(), 0 if arrays else self._offset))
                _describe(argument, value, arrays[-1])
            else:
                argument.sizes[0] = value
        kept = [array.copy() for array in arrays]
        out = HostTensor()
        said = self._library.host_run(arguments, len(given), self._processors, *self._order, ctypes.byref(out))
        self.launches = ctypes.c_int.in_dll(self._library, "host_launches").value
        if said:
            raise Fault(said.decode())
        for array, before in zip(arrays, kept, strict=True):
            assert (array == before).all(), "an input was written"
        return _tensor(out)


def _describe(argument: HostTensor, tensor: torch.Tensor, array: Any) -> None:
    rank = tensor.dim()
    argument.data = array.data.ptr
    argument.sizes[:rank], argument.steps[:rank] = tensor.shape, tensor.stride()
    argument.dimensions, argument.type = rank, DTYPES.index(tensor.dtype)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """NumPy has no bfloat16, and NaN is no reason to call an input changed."""
    return (
        tensor.view({4: torch.int32, 2: torch.int16}[tensor.element_size()]) if tensor.is_floating_point() else tensor
    )


def _tensor(out: HostTensor) -> torch.Tensor:
    dtype, shape = DTYPES[out.type], tuple(out.sizes[: out.dimensions])
    made = torch.empty(shape, dtype=dtype)
    ctypes.memmove(made.data_ptr(), out.data, made.numel() * made.element_size())
    return made
