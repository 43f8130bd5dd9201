"""Rows of tokens split into attention's heads, and joined again, by 16-byte packs where a head is whole ones."""

import cupy
import numpy

from .products import row_packs

SOURCE = r"""
// Where element `column` of row b·S + s, in [B·S, parts · H · size], has its place in [parts, B, H, S, size].
__device__ inline long long place_in_heads(Place at, int batches, int length, int heads, int size) {
  const int row = static_cast<int>(at.row), batch = row / length, position = row % length;
  const int part = at.column / size / heads, head = at.column / size % heads;
  const long long matrix = (static_cast<long long>(part) * batches + batch) * heads + head;
  return (matrix * length + position) * size + at.column % size;
}

// split [parts, B, H, S, size] of rows + bias, rows [B·S, columns]
template <typename T, int kLanes>
__global__ void split_heads(const T* __restrict__ rows, const T* __restrict__ bias, T* __restrict__ split, int batches,
                            int length, int heads, int size, int columns, int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column >= columns) return;
  const Run<T, kLanes> held = load_run<kLanes>(rows + at.row * columns + at.column);
  const Run<T, kLanes> added = load_run<kLanes>(bias + at.column);
  float sums[kLanes];
#pragma unroll
  for (int i = 0; i < kLanes; ++i) sums[i] = as_float(held.lanes[i]) + as_float(added.lanes[i]);
  store_run<kLanes>(split + place_in_heads(at, batches, length, heads, size), rounded<T>(sums));
}

// rows [B·S, H · size] of split [B, H, S, size]
template <typename T, int kLanes>
__global__ void join_heads(const T* __restrict__ split, T* __restrict__ rows, int batches, int length, int heads,
                           int size, int columns, int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column >= columns) return;
  const long long source = place_in_heads(at, batches, length, heads, size);
  store_run<kLanes>(rows + at.row * columns + at.column, load_run<kLanes>(split + source));
}
"""


class Heads:
    """Both kernels for a dtype and sizes, compiled once."""

    def __init__(self, dtype, batches, length, heads, size):
        self._shape = (batches, heads, length, size)
        self._split = row_packs(SOURCE, "split_heads", dtype)
        self._join = row_packs(SOURCE, "join_heads", dtype)
        self._counts = tuple(map(numpy.int32, (batches, length, heads, size)))

    def split(self, rows, bias, parts):
        """[parts, B, H, S, size] of rows [B·S, parts · H · size] with their bias."""
        y = cupy.empty((parts, *self._shape), dtype=rows.dtype)
        self._split(*rows.shape, (rows, bias, y), self._counts, unit=self._shape[-1])
        return y

    def join(self, split):
        """[B·S, H · size] of [B, H, S, size]."""
        batches, heads, length, size = self._shape
        y = cupy.empty((batches * length, heads * size), dtype=split.dtype)
        self._join(*y.shape, (split, y), self._counts, unit=size)
        return y
