"""cuBLAS through cupy.matmul, then bias and GELU in one kernel over its result, in place.

Compute-bound product, 2·M·N·K FLOPs; then M·N elements are read and written once, by 16-byte packs, two rows a thread,
erfc by the rational approximation of gelu/cupy_raw. In float16 the sums are rounded before the bias is added. Predicted
for float16 M=8192,N=4096,K=1024: 134 MB behind the product at 4.2 TB/s, 32 µs where CUDA's own erfcf took 74 µs at
968ac8c4, and with that 1.1 times as fast as eager.

Reached on nvidia-h200 at 968ac8c4: 177 µs for float16 M=8192,N=4096,K=1024, 389 TFLOP/s, 52 % of the compute ceiling,
0.837 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .._cupy.activation import GELU
from .._cupy.dtypes import unsupported
from .._cupy.products import matmul, row_packs

__all__ = ["prepare", "unsupported"]

ROWS = 2  # of a thread: so many packs in flight, under one of the bias

SOURCE = (
    GELU
    + r"""
// Rows `first` to `first` + kRows of z [rows, columns], the run of each that begins at `column`.
template <int kRows, int kLanes, typename T>
__device__ inline void activate_rows(T* z, const T* bias, long long first, long long rows, int columns, int column) {
  Run<T, kLanes> held[kRows];
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    if (first + row < rows) held[row] = load_run<kLanes>(z + (first + row) * columns + column);
  }
  const Run<T, kLanes> added = load_run<kLanes>(bias + column);
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    float values[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[i] = gelu(as_float(held[row].lanes[i]) + as_float(added.lanes[i]));
    if (first + row < rows) store_run<kLanes>(z + (first + row) * columns + column, rounded<T>(values));
  }
}

template <typename T, int kLanes>
__global__ void bias_gelu(T* z, const T* __restrict__ bias, int columns, int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column < columns) activate_rows<1, kLanes>(z, bias, at.row, at.row + 1, columns, at.column);
}

template <typename T, int kLanes>
__global__ void bias_gelu_rows(T* z, const T* __restrict__ bias, int rows, int columns, int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column < columns) activate_rows<@ROWS@, kLanes>(z, bias, at.row * @ROWS@, rows, columns, at.column);
}
""".replace("@ROWS@", str(ROWS))
)


def activation(dtype: Any) -> Callable[[Any, Any], Any]:
    """``launch(z, bias)``: z [M, N] becomes gelu(z + bias) in place."""
    launch = row_packs(SOURCE, "bias_gelu_rows", dtype, down=ROWS)

    def activate(z: Any, bias: Any) -> Any:
        launch(*z.shape, (z, bias), (numpy.int32(z.shape[0]),))
        return z

    return activate


def prepare(a: Any, b: Any, bias: Any) -> Callable[[], Any]:
    activate = activation(a.dtype)

    def run() -> Any:
        return activate(matmul(a, b), bias)

    return run
