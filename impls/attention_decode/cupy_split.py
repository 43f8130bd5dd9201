"""Flash-decoding in CUDA C++ compiled at run time by CuPy, chunks by mma.sync in float16, merged by a second kernel.

Memory-bound: valid positions of both caches read once, parts of G/256 of the caches' bytes written and read again. The
plan is that of cuda_split: products are taken transposed, and fragments are loaded from global memory by 16-byte
vectors, without shared memory in between. Float32 and head dimensions other than 64 and 128 go through the CUDA cores.
Predicted: the device time of cuda_split, with CuPy's two launches in front.

Reached on nvidia-h200 at 968ac8c4: 147 µs for float16 B=64,H=64,G=8,S=4096,D=128,fill=ragged, 3.73 TB/s, 81 % of the
memory ceiling, 3.15 times as fast as torch_eager.
"""

import math

import cupy
import numpy

from .._cupy import dtypes
from .._cupy.dtypes import C_TYPES, CONVERSIONS
from .chunks import chunk_length
from .source import SOURCE

__all__ = ["prepare", "unsupported"]

THREADS = 128
MERGE_THREADS = 256
WARP = 32
FEW_CHUNKS, MANY_ROWS = 8, 1024  # where a warp merges a row: up to so many chunks, from so many rows up to 32
TENSOR_SIZES = (64, 128)  # head dimensions that the tensor-core kernel is built for
LARGEST = 256  # head dimension of the other


def unsupported(dtype, B, H, G, S, D, fill="ragged", layout="contiguous"):
    if D > LARGEST:
        return f"a warp holds head dimensions up to {LARGEST}"
    return dtypes.unsupported(dtype)


def prepare(q, k, v, lengths):
    batches, heads, size = q.shape
    kv_heads, capacity = k.shape[1], k.shape[2]
    tensor = q.dtype == numpy.float16 and size in TENSOR_SIZES
    pairs = batches * kv_heads
    group = heads // max(kv_heads, 1)
    chunk = chunk_length(pairs, capacity)
    splits = -(-capacity // chunk)
    rows = batches * heads
    few = splits <= (FEW_CHUNKS if rows < MANY_ROWS else WARP)
    queries = 8 if tensor else 2  # that a block takes of those which share a head of the caches
    chunks = f"decode_tensor<{size}>" if tensor else f"decode_plain<{C_TYPES[q.dtype.name]}>"
    merge = f"decode_merge{'_few' if few else ''}<{C_TYPES[q.dtype.name]}>"
    module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=(chunks, merge))
    chunk_kernel, merge_kernel = module.get_function(chunks), module.get_function(merge)
    scale = numpy.float32(math.log2(math.e) / math.sqrt(size))
    grid = (pairs, splits, -(-group // queries))
    total_heads = numpy.int32(heads)
    merge_grid = (-(-rows * WARP // MERGE_THREADS) if few else rows,)
    of_rows = (numpy.int64(rows),) if few else ()
    counts = [numpy.int32(n) for n in (kv_heads, group, chunk, splits, size)]

    def run():
        out = cupy.empty((batches, heads, size), dtype=q.dtype)
        if out.size:
            caches = [_dense_rows(cache) for cache in (k, v)]
            strides = [numpy.int64(s // q.itemsize) for cache in caches for s in cache.strides[:3]]
            sums = cupy.empty((rows, splits, size), dtype=numpy.float32)
            stats = cupy.empty((rows, splits, 2), dtype=numpy.float32)
            source = cupy.ascontiguousarray(q)
            chunk_kernel(grid, (THREADS,), (source, *caches, lengths, sums, stats, *strides, *counts, scale))
            merge_kernel(merge_grid, (MERGE_THREADS,), (sums, stats, lengths, out, total_heads, *counts[2:], *of_rows))
        return out

    return run


def _dense_rows(cache):
    """The cache as it lies where 16-byte vectors can read its rows, else a copy."""
    aligned = cache.data.ptr % 16 == 0 and all(stride % 16 == 0 for stride in cache.strides[:3])
    return cache if aligned and cache.strides[3] == cache.itemsize else cupy.ascontiguousarray(cache)
