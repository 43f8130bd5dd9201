"""cuBLAS through cupy.matmul, then bias and GELU in one kernel over its result, in place.

Compute-bound product, 2·M·N·K FLOPs; then M·N elements are read and written once, a 16-byte pack a thread. In float16
the sums are rounded before the bias is added. Predicted: level with eager.

Reached on nvidia-h200 at 968ac8c4: 177 µs for float16 M=8192,N=4096,K=1024, 389 TFLOP/s, 52 % of the compute ceiling,
0.837 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._cupy.dtypes import unsupported
from .._cupy.products import matmul, row_packs

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T, int kLanes>
__global__ void bias_gelu(T* z, const T* __restrict__ bias, int columns, int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column >= columns) return;
  T* place = z + at.row * columns + at.column;
  Run<T, kLanes> held = load_run<kLanes>(place);
  const Run<T, kLanes> added = load_run<kLanes>(bias + at.column);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    const float x = as_float(held.lanes[i]) + as_float(added.lanes[i]);
    put(held.lanes + i, 0.5f * x * erfcf(x * -0.70710678118654752f));
  }
  store_run<kLanes>(place, held);
}
"""


def prepare(a: Any, b: Any, bias: Any) -> Callable[[], Any]:
    activate = row_packs(SOURCE, "bias_gelu", a.dtype)

    def run() -> Any:
        y = matmul(a, b)
        activate(*y.shape, (y, bias))
        return y

    return run
