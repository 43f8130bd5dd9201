// 16 bytes an access of global memory both ways: 64 × 64 tiles for many channels, runs of pixels for few.
//
// Bound by memory: each element read and written once. Up to 16 channels, a block stages a run of whole pixels, so that
// neither side is strided. Prediction: near the copy ceiling where planes (and, for many channels, pixels) are whole
// packs; other shapes take the padded 32 × 32 tiles.
//
// Reached on nvidia-h200 at 968ac8c4: 136 µs for float32 N=64,C=64,H=128,W=128,to=nhwc, 3.94 TB/s, 92 % of the memory
// ceiling, 2.10 times as fast as torch_eager (unstable).
#include "../_cuda/transpose_packs.cuh"
#include "few_channels.cuh"
#include "host.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x, bool to_nhwc) {
  return converted(x, to_nhwc, "layout_convert/cuda_vec",
                   [&](const auto* in, auto* out, int64_t images, int64_t rows, int64_t columns, cudaStream_t stream) {
                     const int64_t channels = to_nhwc ? rows : columns, plane = to_nhwc ? columns : rows;
                     if (!is_few_channels(in, out, plane, channels)) {
                       launch_transpose_packs(in, out, images, rows, columns, stream);
                     } else if (to_nhwc) {
                       launch_few_channels<true>(in, out, images, plane, channels, stream);
                     } else {
                       launch_few_channels<false>(in, out, images, plane, channels, stream);
                     }
                   });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, bool to_nhwc) -> Tensor", run)
