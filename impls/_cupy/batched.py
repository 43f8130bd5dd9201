"""Batches of matrix products by cuBLAS, of arrays as they lie, with sums in float32 whatever their dtype.

cupy.matmul of CuPy 14 multiplies a batch of float16 in float32: it copies both factors, leaves the tensor cores idle
and copies the product back; what is not contiguous it copies besides. Here the same arrays go to cuBLAS itself, with
any pitch from row to row and any stride from matrix to matrix.

cuBLAS sees matrices by columns. A matrix by rows is its own transpose to it, so that product = a · b is asked for as
productᵀ = bᵀ · aᵀ: b is the left factor there, and columns count as rows.
"""

from itertools import pairwise
from typing import NamedTuple

import cupy
import numpy

TYPES = {"float32": "CUDA_R_32F", "float16": "CUDA_R_16F"}
AS_IT_LIES, TURNED = 0, 1  # CUBLAS_OP_N, CUBLAS_OP_T
# CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, a name that CuPy does not have: no partial sums in 16 bits. TF32 has
# a mode of its own; CUBLAS_COMPUTE_32F does not use it in this one.
SUMS_IN_FLOAT32 = 16


class Arguments(NamedTuple):
    """Sizes among the arguments of cublasGemmStridedBatchedEx, in elements, by its names: its A is the right factor."""

    transa: int
    transb: int
    m: int
    n: int
    k: int
    lda: int
    stride_a: int
    ldb: int
    stride_b: int
    ldc: int
    stride_c: int
    count: int


def batched_product(a, b, out=None, transpose_a=False, transpose_b=False, alpha=1.0):
    """alpha · a · b for a [..., M, K] and b [..., K, N] of one dtype, rounded once to it: [..., M, N].

    With ``transpose_a`` a is given as [..., K, M], with ``transpose_b`` b as [..., N, K]. Factors that ``walk`` has no
    words for are copied first; for ``out`` it must have some, and no memory of ``out`` may be theirs.
    """
    shape = product_shape(a.shape, b.shape, transpose_a, transpose_b)
    out = cupy.empty(shape, dtype=a.dtype) if out is None else out
    if out.shape != shape or not a.dtype == b.dtype == out.dtype:
        raise ValueError(f"a product of {a.dtype} {a.shape} and {b.dtype} {b.shape} is no {out.dtype} {out.shape}")
    if out.size == 0:
        return out
    if a.size == 0:  # nothing to add up
        out.fill(0)
        return out
    a, b = (x if walk(x) else cupy.ascontiguousarray(x) for x in (a, b))
    _multiply(a, b, out, arguments_of(a, b, out, transpose_a, transpose_b), alpha)
    return out


def product_shape(a, b, transpose_a=False, transpose_b=False):
    """The shape of a product of arrays of such shapes. Raises ValueError where there is none."""
    rows, inner = reversed(a[-2:]) if transpose_a else a[-2:]
    depth, columns = reversed(b[-2:]) if transpose_b else b[-2:]
    if inner != depth or a[:-2] != b[:-2]:
        raise ValueError(f"no product of {a} and {b}, transposed: {transpose_a}, {transpose_b}")
    return (*a[:-2], rows, columns)


def walk(x):
    """(stride, pitch) of [..., rows, columns] in elements, from matrix to matrix and from row to row.

    None where cuBLAS has no words for it: a gap between neighbours, overlapping rows, leading dimensions that are not
    one walk, or steps backwards.
    """
    *leading, rows, columns = x.shape
    *steps, down, across = (step // x.itemsize for step in x.strides)
    if any(step % x.itemsize for step in x.strides) or (columns > 1 and across != 1):
        return None
    pitch = down if rows > 1 else max(columns, 1)
    if pitch < max(columns, 1):
        return None
    axes = [(size, step) for size, step in zip(leading, steps, strict=True) if size != 1]
    if any(outer[1] != inner[0] * inner[1] for outer, inner in pairwise(axes)):
        return None
    stride = axes[-1][1] if axes else rows * pitch
    return (stride, pitch) if stride >= 0 else None


def arguments_of(a, b, out, transpose_a=False, transpose_b=False):
    """What cuBLAS is to be told of arrays that it can walk. Raises ValueError where ``out`` is none of these."""
    if not walk(out):
        raise ValueError(f"cuBLAS cannot write an array of strides {out.strides} and shape {out.shape}")
    (stride_a, lda), (stride_b, ldb), (stride_c, ldc) = (walk(x) for x in (b, a, out))
    *leading, rows, columns = out.shape
    return Arguments(
        transa=TURNED if transpose_b else AS_IT_LIES,
        transb=TURNED if transpose_a else AS_IT_LIES,
        m=columns,
        n=rows,
        k=a.shape[-2] if transpose_a else a.shape[-1],
        lda=lda,
        stride_a=stride_a,
        ldb=ldb,
        stride_b=stride_b,
        ldc=ldc,
        stride_c=stride_c,
        count=int(numpy.prod(leading, dtype=numpy.int64)),
    )


def _multiply(a, b, out, sizes, alpha):
    """Launch it on CuPy's current stream, which CuPy's binding hands to cuBLAS itself."""
    cublas = cupy.cuda.cublas
    handle = cupy.cuda.get_cublas_handle()
    kind = getattr(cupy.cuda.runtime, TYPES[out.dtype.name])
    scalars = numpy.array([alpha, 0.0], dtype=numpy.float32)  # read before the call returns
    one, zero = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
    pointers, arithmetic = cublas.getPointerMode(handle), cublas.getMathMode(handle)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    cublas.setMathMode(handle, SUMS_IN_FLOAT32)
    try:
        cublas.gemmStridedBatchedEx(
            handle,
            *sizes[:5],
            one,
            *(b.data.ptr, kind, sizes.lda, sizes.stride_a),
            *(a.data.ptr, kind, sizes.ldb, sizes.stride_b),
            zero,
            *(out.data.ptr, kind, sizes.ldc, sizes.stride_c),
            *(sizes.count, cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_GEMM_DEFAULT),
        )
    finally:
        cublas.setMathMode(handle, arithmetic)
        cublas.setPointerMode(handle, pointers)
