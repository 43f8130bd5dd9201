// 32 × 32 tiles through shared memory: a tile is read by rows and written by columns, both coalesced.
//
// Bound by memory: M·N elements read and written, in single elements of 4 or 2 bytes. Reading a column of the tile is a
// bank conflict of 32 turns in float32 (16 in a 16-bit type, whose elements share words). Prediction: far ahead of
// cuda_naive, behind cuda_tiled_padded.
//
// Reached on nvidia-h200 at 968ac8c4: 334 µs for float32 M=8192,N=8192, 1.61 TB/s, 38 % of the memory ceiling, 1.38
// times as fast as torch_eager.
#include "host.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x) {
  return transposed(x, "transpose/cuda_tiled", [](const auto* in, auto* out, int64_t rows, int64_t columns,
                                                  cudaStream_t stream) {
    launch_transpose_tile<0>(in, out, 1, rows, columns, stream);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
