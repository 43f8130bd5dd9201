// Tiles of 32 × 32 in shared memory, whose elements are read once a tile instead of once a product.
//
// Compute-bound in principle, bound by shared memory in fact: a thread reads two floats for one multiply-add. The tile
// cuts the traffic from global memory by 32. A's tile is written column-wise with a pitch of 32 floats, so the 32 lanes
// of a warp meet in one bank and the store is replayed 32 times: 32 + 1 + 64 shared-memory cycles a warp and tile where
// 1 + 1 + 64 would do. cuda_tiled_padded differs in nothing but the pitch. Predicted: about 1.4 times slower than that.
//
// Reached on nvidia-h200 at 968ac8c4: 218 ms for bfloat16 M=8192,N=8192,K=8192, 5.04 TFLOP/s, 0.64 % of the compute
// ceiling, 0.00640 times as fast as torch_eager (unstable).
#include "tiled.cuh"

namespace {

Tensor run(Tensor a, Tensor b) { return matmul_tiled<kTile>(a, b, "matmul/cuda_tiled"); }

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b) -> Tensor", run)
