"""A batch of matrices transposed by padded 32 × 32 tiles through shared memory, in CuPy's run-time compiled CUDA."""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

TILE = 32
DOWN = 8  # threads down a tile: each moves four elements

SOURCE = r"""
// x [batches, rows, columns] to y [batches, columns, rows]
template <typename T>
__global__ void transpose_tile(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  __shared__ T tile[32][33];
  const long long across = (columns + 31) / 32, down = (rows + 31) / 32;
  const long long in_matrix = blockIdx.x % (across * down), start = blockIdx.x / (across * down) * rows * columns;
  const long long first_row = in_matrix / across * 32, first_column = in_matrix % across * 32;
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const long long row = first_row + i, column = first_column + threadIdx.x;
    if (row < rows && column < columns) tile[i][threadIdx.x] = x[start + row * columns + column];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const long long row = first_row + threadIdx.x, column = first_column + i;
    if (row < rows && column < columns) y[start + column * rows + row] = tile[threadIdx.x][i];
  }
}
"""


def transposer(x, batches, rows, columns, shape):
    """``run`` for x as [batches, rows, columns] turned to [batches, columns, rows], returned in ``shape``."""
    name = f"transpose_tile<{C_TYPES[x.dtype.name]}>"
    module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=(name,))
    kernel = module.get_function(name)
    grid = (batches * -(-rows // TILE) * -(-columns // TILE),)

    def run():
        y = cupy.empty(shape, dtype=x.dtype)
        if y.size:
            kernel(grid, (TILE, DOWN), (cupy.ascontiguousarray(x), y, numpy.int64(rows), numpy.int64(columns)))
        return y

    return run
