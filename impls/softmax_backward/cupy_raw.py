"""A block a row in CUDA C++ compiled at run time by CuPy, both rows in registers by 16-byte vectors.

Memory-bound: 3·M·N elements have to move for 4 FLOPs each. A thread issues all its loads, up to 4 vectors of each row,
before it uses the first. Rows beyond 1024 times that are read twice, by vectors, and those that are not 16-byte aligned
by single elements, the second time mostly from L2. Prediction: 95 % of the ceiling for rows of 8192, level with
cuda_held, which holds as much a thread: two blocks of 512 threads share a multiprocessor, so that one's loads run while
the other waits at its barrier. Read twice, by blocks that stopped between their loads, they reached 73 %.

Reached on nvidia-h200 at 968ac8c4: 182 µs for float32 M=8192,N=8192, 4.43 TB/s, 101 % of the memory ceiling, 2.04 times
as fast as torch_eager.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.packed_rows import held_rows

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T, int kPacks>
__global__ void ROW_BOUNDS(2 * kPacks) softmax_backward_rows(const T* __restrict__ grad, const T* __restrict__ y,
                                                             T* __restrict__ grad_x, long long length) {
  using Held = Row<T, kPacks>;
  constexpr int kLanes = Held::kLanes;
  grad_x += blockIdx.x * length;
  const Held grads(grad + blockIdx.x * length, length);
  Held values(y + blockIdx.x * length, length);
  float sum = 0.0f;
  values.visit([&](long long, const Lanes<T, kLanes>& v, const Lanes<T, kLanes>& g) {
    for (int i = 0; i < kLanes; ++i) sum += as_float(g.lanes[i]) * as_float(v.lanes[i]);
  }, grads);
  sum = block_sum(sum);
  values.visit([&](long long at, const Lanes<T, kLanes>& v, const Lanes<T, kLanes>& g) {
    Lanes<T, kLanes> result;
    for (int i = 0; i < kLanes; ++i) put(result.lanes + i, as_float(v.lanes[i]) * (as_float(g.lanes[i]) - sum));
    put_lanes(grad_x + at, result);
  }, grads);
}
"""


def prepare(grad_output, y):
    launch = held_rows(SOURCE, "softmax_backward_rows", y, held=2)

    def run():
        grad_x = cupy.empty(y.shape, dtype=y.dtype)
        return launch(grad_x, (cupy.ascontiguousarray(grad_output), cupy.ascontiguousarray(y)))

    return run
