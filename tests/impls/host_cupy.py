"""A stand-in for CuPy on NumPy's arrays: kernels are compiled by g++ and run on the CPU, cuBLAS is a model of its own.

It has what implementations in impls/ use, so that their own code runs: sizes, alignment checks, launches, arguments.
Arrays that it makes lie against a page that must not be touched, with NaN in them. host_cuda.h has the rest.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import re
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("host_cuda.h")
PAGE = mmap.PAGESIZE
UNWRITTEN = 0xFF  # NaN in every floating-point type, if no byte of it is written
APPROXIMATIONS = {  # inline PTX → what it approximates
    r'asm\("rcp\.approx\.ftz\.f32 %0, %1;" : "=f"\((\w+)\) : "f"\((.*)\)\);': r"\1 = 1.0f / (\2);",
    r'asm\("ex2\.approx\.ftz\.f32 %0, %1;" : "=f"\((\w+)\) : "f"\((.*)\)\);': r"\1 = exp2f(\2);",
}
POINTER_HOST, POINTER_DEVICE = 0, 1
DEFAULT_MATH, TF32_MATH, SUMS_AS_THEY_ARE = 0, 3, 16
LIBC = ctypes.CDLL(None, use_errno=True)


class Array(np.ndarray):
    """NumPy's array with the attributes of CuPy's."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])

    def get(self) -> np.ndarray:
        return np.asarray(self)


def guarded(nbytes: int, after: bool = True, offset: int = 0) -> np.ndarray:
    """Bytes that end at a page which must not be touched, or with ``after`` false begin behind one.

    They begin at a multiple of 16 bytes, and ``offset`` further.
    """
    pages = -(-(nbytes + offset + 16) // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + (pages + 1) * PAGE):
        if LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    inner = np.frombuffer(memory, dtype=np.uint8)[PAGE : (pages + 1) * PAGE]
    inner[:] = UNWRITTEN
    begin = (inner.size - nbytes - offset) // 16 * 16 + offset if after else offset
    return inner[begin : begin + nbytes]


class Placement:
    """Where arrays are put: against the page behind or before; inputs so many elements off a multiple of 16 bytes."""

    after = True
    offset = 0


def empty(shape: Any, dtype: Any = np.float32) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    return guarded(size * dtype.itemsize, Placement.after).view(dtype).reshape(shape).view(Array)


def placed(source: np.ndarray, offset: int | None = None) -> Any:
    """A copy of an array with its strides, in memory of its own."""
    offset = Placement.offset if offset is None else offset
    if source.size == 0:
        return np.empty_like(source).view(Array)
    extent = sum((size - 1) * step for size, step in zip(source.shape, source.strides, strict=True)) + source.itemsize
    memory = guarded(extent, Placement.after, offset * source.itemsize).view(source.dtype)
    copy = np.lib.stride_tricks.as_strided(memory, source.shape, source.strides)
    copy[...] = source
    return copy.view(Array)


class Fault(Exception):
    """A kernel did what a GPU would not survive, or not do."""


class Kernel:
    def __init__(self, function: Any, name: str) -> None:
        self._function, self._name = function, name
        function.restype = ctypes.c_char_p

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        held, kinds, sizes = [], b"", []
        for argument in arguments:
            array = isinstance(argument, np.ndarray)
            value = np.uint64(argument.data.ptr) if array else argument
            if not isinstance(value, np.generic):
                raise Fault(f"{self._name}: {value!r} has no type that a kernel could be sure of")
            none = isinstance(argument, np.uint64) and argument == 0
            kinds += b"p" if array or none else b"f" if value.dtype.kind == "f" else b"i"
            held.append(np.array([value]))
            sizes.append(value.dtype.itemsize)
        if min((*grid, *block)) < 1:
            raise Fault(f"{self._name}: a launch of {grid} blocks of {block}")
        pointers = (ctypes.c_void_p * len(held))(*(one.ctypes.data for one in held))
        three = [(ctypes.c_uint * 3)(*size, *(1,) * (3 - len(size))) for size in (grid, block)]
        said = self._function(*three, pointers, kinds, (ctypes.c_int * len(sizes))(*sizes), len(sizes))
        if said:
            raise Fault(f"{self._name}: {said.decode()}")


class Compiler:
    """Compiles kernels into a folder, each source once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def library(self, code: str, names: tuple[str, ...]) -> Any:
        for pattern, plain in APPROXIMATIONS.items():
            code = re.sub(pattern, plain, code)
        kernels = "".join(f"HOST_KERNEL(kernel_{i}, {name})\n" for i, name in enumerate(names))
        text = f'#include "{HEADER}"\n{code.replace("#include <cuda_fp16.h>", "")}\n{kernels}'
        stem = self._folder / hashlib.sha256((text + HEADER.read_text()).encode()).hexdigest()[:16]
        library = stem.with_suffix(".so")
        if not library.exists():
            stem.with_suffix(".cpp").write_text(text)
            flags = ("-std=c++17", "-O1", "-fPIC", "-w", "-fno-strict-aliasing", "-fsanitize=alignment")
            steps = (("-c", *flags, stem.with_suffix(".cpp"), "-o", stem.with_suffix(".o")),)
            steps += (("-shared", stem.with_suffix(".o"), "-o", library),)  # not linked with what -fsanitize would add
            for step in steps:
                done = subprocess.run(["g++", *map(str, step)], capture_output=True, text=True)
                if done.returncode:
                    raise Fault(done.stderr)
        return ctypes.CDLL(str(library))

    def module(self, code: str, options: tuple[str, ...], name_expressions: tuple[str, ...]) -> Any:
        names = tuple(dict.fromkeys(name_expressions))
        library = self.library(code, names)
        return SimpleNamespace(
            get_function=lambda name: Kernel(getattr(library, f"kernel_{names.index(name)}"), name),
        )


class Cublas:
    """cublasGemmStridedBatchedEx by its documentation: matrices by columns, ints, a pointer mode, a math mode.

    Names and places of arguments are those of cupy.cuda.cublas in CuPy 14.0 and 14.2, which has no more of the names.
    """

    CUBLAS_POINTER_MODE_HOST = POINTER_HOST
    CUBLAS_COMPUTE_32F = 68
    CUBLAS_GEMM_DEFAULT = -1

    def __init__(self) -> None:
        self.calls = 0
        self.pointers, self.arithmetic = POINTER_DEVICE, TF32_MATH  # as somebody may have left them

    def getPointerMode(self, handle: int) -> int:
        return self.pointers

    def setPointerMode(self, handle: int, mode: int) -> None:
        self.pointers = mode

    def getMathMode(self, handle: int) -> int:
        return self.arithmetic

    def setMathMode(self, handle: int, mode: int) -> None:
        self.arithmetic = mode

    # fmt: off
    def gemmStridedBatchedEx(
        self, handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta,
        C, Ctype, ldc, strideC, batchCount, computeType, algo,
    ) -> None:
        # fmt: on
        integers = (transa, transb, m, n, k, lda, strideA, ldb, strideB, ldc, strideC, batchCount)
        assert all(type(one) is int and 0 <= one < 2**31 for one in integers), integers
        assert self.pointers == POINTER_HOST and computeType == self.CUBLAS_COMPUTE_32F
        assert self.arithmetic & ~SUMS_AS_THEY_ARE == DEFAULT_MATH, "float32 may be rounded to TF32"
        assert min(m, n, k, batchCount) > 0
        assert lda >= (k if transa else m) and ldb >= (n if transb else k) and ldc >= m, integers
        assert Atype == Btype == Ctype
        dtype = {0: np.dtype(np.float32), 2: np.dtype(np.float16)}[Atype]
        left = _by_columns(A, dtype, (k, m) if transa else (m, k), lda, strideA, batchCount)
        right = _by_columns(B, dtype, (n, k) if transb else (k, n), ldb, strideB, batchCount)
        result = _by_columns(C, dtype, (m, n), ldc, strideC, batchCount)
        one, zero = (np.ctypeslib.as_array((ctypes.c_float * 1).from_address(place))[0] for place in (alpha, beta))
        assert zero == 0
        factors = [matrix.swapaxes(1, 2) if turned else matrix for matrix, turned in ((left, transa), (right, transb))]
        sums = np.matmul(*(factor.astype(np.float64) for factor in factors)) * np.float64(one)
        result[...] = sums.astype(dtype)
        self.calls += 1


def _by_columns(
    address: int, dtype: np.dtype, shape: tuple[int, int], pitch: int, stride: int, count: int
) -> np.ndarray:
    """[count, rows, columns] of matrices by columns."""
    rows, columns = shape
    elements = (count - 1) * stride + (columns - 1) * pitch + rows
    memory = (ctypes.c_char * (elements * dtype.itemsize)).from_address(address)
    steps = tuple(step * dtype.itemsize for step in (stride, 1, pitch))
    return np.lib.stride_tricks.as_strided(np.frombuffer(memory, dtype), (count, rows, columns), steps)


def _matmul(a: Any, b: Any) -> Any:
    assert a.ndim == b.ndim == 2, "a batch of float16 would be multiplied in float32"
    out = empty((a.shape[0], b.shape[1]), a.dtype)
    out[...] = (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)
    return out


def _contiguous(array: Any) -> Any:
    if array.flags.c_contiguous:
        return array
    out = empty(array.shape, array.dtype)
    out[...] = array
    return out


def _zeros(shape: Any, dtype: Any = np.float32) -> Any:
    out = empty(shape, dtype)
    out[...] = 0
    return out


def make(compiler: Compiler) -> ModuleType:
    """The module, to be put in the place of ``cupy``."""
    cupy: Any = ModuleType("cupy")
    cupy.RawModule = compiler.module
    cupy.ndarray = Array
    cupy.empty, cupy.zeros, cupy.ascontiguousarray, cupy.matmul = empty, _zeros, _contiguous, _matmul
    cupy.float32, cupy.float16, cupy.sqrt = np.float32, np.float16, np.sqrt
    cupy.ones = lambda *a, **k: placed(np.ones(*a, **k), offset=0)
    cupy.concatenate = lambda *a, **k: placed(np.concatenate(*a, **k), offset=0)
    cupy.broadcast_to = lambda array, shape: np.broadcast_to(array, shape, subok=True)
    cupy.cuda = SimpleNamespace(
        cublas=Cublas(),
        get_cublas_handle=lambda: 1,
        runtime=SimpleNamespace(CUDA_R_32F=0, CUDA_R_16F=2),
    )
    return cupy
