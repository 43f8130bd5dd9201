"""A block a row in CUDA C++ compiled at run time by CuPy: an online maximum and sum, four 16-byte vectors in flight.

Memory-bound: M·V logits read once. The sum is rescaled once for four vectors. Prediction: level with cuda_online, with
CuPy's launch in front.

Reached on nvidia-h200 at 968ac8c4: 235 µs for float32 M=2048,V=128256, 4.48 TB/s, 97 % of the memory ceiling, 4.32
times as fast as torch_eager.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.packed_rows import streamed_rows

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T>
__global__ void __launch_bounds__(256) cross_entropy_rows(const T* __restrict__ x,
                                                          const long long* __restrict__ target, T* __restrict__ y,
                                                          long long length) {
  x += blockIdx.x * length;
  const long long wanted = target[blockIdx.x];
  float maximum = NEGATIVE_INFINITY, sum = 0.0f;
  stream_row(x, length, [&](const auto& some) {
    float larger = maximum;
    for (int i = 0; i < some.kLanes; ++i) larger = fmaxf(larger, some.lanes[i]);
    if (larger == NEGATIVE_INFINITY) return;
    sum *= __expf(maximum - larger);
    for (int i = 0; i < some.kLanes; ++i) sum += __expf(some.lanes[i] - larger);
    maximum = larger;
  });
  const float whole = block_max(maximum);
  sum = block_sum(maximum == NEGATIVE_INFINITY ? 0.0f : sum * __expf(maximum - whole));
  if (threadIdx.x == 0) put(y + blockIdx.x, whole - as_float(x[wanted]) + logf(sum));
}
"""


def prepare(x, target):
    launch = streamed_rows(SOURCE, "cross_entropy_rows", x)

    def run():
        return launch(cupy.empty(x.shape[:1], dtype=x.dtype), (cupy.ascontiguousarray(x), target))

    return run
