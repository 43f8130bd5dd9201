"""Blocks of the whole matrix in memory order in CUDA C++ compiled at run time by CuPy, two 16-byte vectors a thread.

Memory-bound: 2·M·V elements. Vectors begin at multiples of 16 bytes wherever rows begin; an element that is past its
row's end belongs to the next one. Predicted: 85 % of the ceiling for a read and a write, at odd V too.

Reached on nvidia-h200 at 968ac8c4: 563 µs for float32 M=2048,V=128256, 3.74 TB/s, 87 % of the memory ceiling, 3.65
times as fast as torch_eager.
"""

import cupy
import numpy

from .._cupy.dtypes import C_TYPES, CONVERSIONS, unsupported

__all__ = ["prepare", "unsupported"]

THREADS = 256
VECTORS = 2  # in flight a thread

SOURCE = r"""
template <typename T, int kLanes>
struct alignas(kLanes * sizeof(T)) Lanes {
  T lanes[kLanes];
};

template <typename T, int kLanes>
__global__ void __launch_bounds__(@THREADS@)
    cross_entropy_backward_flat(const T* __restrict__ grad, const T* __restrict__ x, const float* __restrict__ lse,
                                const long long* __restrict__ target, T* __restrict__ grad_x, long long size,
                                int length) {
  constexpr int kVectors = @VECTORS@, kThreads = @THREADS@;
  using Part = Lanes<T, kLanes>;
  const long long first = static_cast<long long>(blockIdx.x) * kThreads * kVectors * kLanes;
  const long long first_row = first / length;
  Part parts[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const long long at = first + (v * kThreads + static_cast<int>(threadIdx.x)) * kLanes;
    if (at + kLanes <= size) parts[v] = *reinterpret_cast<const Part*>(x + at);
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int skip = (v * kThreads + static_cast<int>(threadIdx.x)) * kLanes;
    const long long at = first + skip;
    if (at >= size) break;
    long long row = first_row;
    long long column = first - row * length + skip;
    for (; column >= length; column -= length) ++row;  // once at most, unless rows are short
    float shift = lse[row], scale = as_float(grad[row]);
    long long wanted = target[row];
    const int count = at + kLanes <= size ? kLanes : static_cast<int>(size - at);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lane >= count) break;
      if (column == length) {
        column = 0;
        ++row;
        shift = lse[row];
        scale = as_float(grad[row]);
        wanted = target[row];
      }
      const float logit = as_float(count == kLanes ? parts[v].lanes[lane] : x[at + lane]);
      const float p = __expf(logit - shift);
      put(parts[v].lanes + lane, (column == wanted ? p - 1.0f : p) * scale);
      if (count < kLanes) grad_x[at + lane] = parts[v].lanes[lane];
      ++column;
    }
    if (count == kLanes) *reinterpret_cast<Part*>(grad_x + at) = parts[v];
  }
}
"""


def prepare(grad_output, x, lse, target):
    length = x.shape[1]
    most = 16 // x.dtype.itemsize
    names = {lanes: f"cross_entropy_backward_flat<{C_TYPES[x.dtype.name]}, {lanes}>" for lanes in (1, most)}
    code = CONVERSIONS + SOURCE.replace("@THREADS@", str(THREADS)).replace("@VECTORS@", str(VECTORS))
    module = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=tuple(names.values()))
    kernels = {lanes: module.get_function(name) for lanes, name in names.items()}

    def run():
        logits = cupy.ascontiguousarray(x)
        grad_x = cupy.empty(x.shape, dtype=x.dtype)
        if grad_x.size:
            lanes = most if logits.data.ptr % 16 == 0 and grad_x.data.ptr % 16 == 0 else 1
            blocks = -(-grad_x.size // (THREADS * VECTORS * lanes))
            arguments = (grad_output, logits, lse, target, grad_x, numpy.int64(grad_x.size), numpy.int32(length))
            kernels[lanes]((blocks,), (THREADS,), arguments)
        return grad_x

    return run
