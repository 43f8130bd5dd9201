// One element a thread: reads are coalesced, and each thread writes into a row of its own.
//
// Bound by memory: M·N elements read and written, but a warp's 32 writes fall into 32 different sectors of 32 bytes, of
// which each uses one element; the L2 joins some of them. Prediction: several times the time of cuda_tiled.
//
// Reached on nvidia-h200 at 968ac8c4: 1.02 ms for float32 M=8192,N=8192, 529 GB/s, 12 % of the memory ceiling, 0.455
// times as fast as torch_eager.
#include "host.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename Word>
__global__ void transpose_naive(const Word* __restrict__ x, Word* __restrict__ y, int64_t rows, int64_t columns) {
  const int64_t i = global_thread();
  if (i < rows * columns) y[i % columns * rows + i / columns] = x[i];
}

Tensor run(Tensor x) {
  return transposed(x, "transpose/cuda_naive", [](const auto* in, auto* out, int64_t rows, int64_t columns,
                                                  cudaStream_t stream) {
    transpose_naive<<<covering_grid(rows * columns, kBlock), kBlock, 0, stream>>>(in, out, rows, columns);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
