// Padded 32 × 32 tiles through shared memory, image by image.
//
// Bound by memory: each element read and written once, in single elements. With C = 3 a tile holds 3 of 32 rows, so
// most threads idle. Prediction: behind cuda_vec, far behind it for C = 3.
//
// Reached on nvidia-h200 at 968ac8c4: 222 µs for float32 N=64,C=64,H=128,W=128,to=nhwc, 2.42 TB/s, 57 % of the memory
// ceiling, 1.29 times as fast as torch_eager.
#include "host.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x, bool to_nhwc) {
  return converted(x, to_nhwc, "layout_convert/cuda_tiled",
                   [](const auto* in, auto* out, int64_t images, int64_t rows, int64_t columns, cudaStream_t stream) {
                     launch_transpose_tile<1>(in, out, images, rows, columns, stream);
                   });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, bool to_nhwc) -> Tensor", run)
