"""Padded 32 × 32 tiles through shared memory in CUDA C++ compiled at run time by CuPy.

Bound by memory: M·N elements read and written, in single elements. Prediction: the device time of cuda_tiled_padded,
with CuPy's launch in front.
"""

import cupy
import numpy

from .._cupy.dtypes import C_TYPES, CONVERSIONS, unsupported

__all__ = ["prepare", "unsupported"]

TILE = 32
DOWN = 8  # threads down a tile: each moves four elements

SOURCE = r"""
template <typename T>
__global__ void transpose_tile(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  __shared__ T tile[32][33];
  const long long across = (columns + 31) / 32;
  const long long first_row = blockIdx.x / across * 32, first_column = blockIdx.x % across * 32;
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const long long row = first_row + i, column = first_column + threadIdx.x;
    if (row < rows && column < columns) tile[i][threadIdx.x] = x[row * columns + column];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const long long row = first_row + threadIdx.x, column = first_column + i;
    if (row < rows && column < columns) y[column * rows + row] = tile[threadIdx.x][i];
  }
}
"""


def prepare(x):
    name = f"transpose_tile<{C_TYPES[x.dtype.name]}>"
    module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=(name,))
    kernel = module.get_function(name)
    rows, columns = x.shape
    grid = (-(-rows // TILE) * -(-columns // TILE),)

    def run():
        y = cupy.empty((columns, rows), dtype=x.dtype)
        if y.size:
            kernel(grid, (TILE, DOWN), (cupy.ascontiguousarray(x), y, numpy.int64(rows), numpy.int64(columns)))
        return y

    return run
