// 64 × 64 tiles, 16 bytes an access of global memory both ways, the turn made by words of shared memory.
//
// Bound by memory: M·N elements read and written; a row of a tile is 256 bytes of float32, 128 of a 16-bit type, both
// reading and writing. Prediction: near the copy ceiling for matrices whose sides are multiples of a vector; others
// take the padded 32 × 32 tiles.
//
// Reached on nvidia-h200 at 968ac8c4: 139 µs for float32 M=8192,N=8192, 3.86 TB/s, 90 % of the memory ceiling, 3.33
// times as fast as torch_eager.
#include "../_cuda/transpose_packs.cuh"
#include "host.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x) {
  return transposed(x, "transpose/cuda_vec", [](const auto* in, auto* out, int64_t rows, int64_t columns,
                                                cudaStream_t stream) {
    launch_transpose_packs(in, out, 1, rows, columns, stream);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
