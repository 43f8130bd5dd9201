// Neighbouring threads 32 elements apart, each on a memory line of its own (what not to do).
//
// Bound by the L1 and L2 pipelines: N elements read, N written as in cuda_branchfree, the same instructions and the
// same threads, but a warp's float32 request needs 32 lines of 128 bytes where it could do with one. The other 31
// words of each line are wanted by other warps of the same tile, so DRAM traffic grows less than the number of
// transactions. Prediction: several times slower than cuda_branchfree.
//
// Reached on nvidia-h200 at 968ac8c4: 1.99 ms for float32 N=134217728, 540 GB/s, 13 % of the memory ceiling, 0.126
// times as fast as torch_eager.
#include "rectify.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr int kStride = 32;             // elements between neighbouring threads
constexpr int kTile = kWarp * kStride;  // elements that the map permutes among themselves

// A bijection of each tile onto itself: lane l of the tile's warp w takes element 32 l + w.
__device__ __forceinline__ int64_t strided_element(int64_t thread) {
  const int64_t tile = thread / kTile;
  const int64_t lane = thread % kWarp;
  const int64_t warp = thread % kTile / kWarp;
  return tile * kTile + lane * kStride + warp;
}

template <typename T>
__global__ void relu_uncoalesced(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  const int64_t i = strided_element(global_thread());
  if (i < size) y[i] = rectify(x[i]);
}

Tensor run(Tensor x) {
  return elementwise(x, "relu_uncoalesced", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    const int64_t threads = ceil_div(size, kTile) * kTile;  // whole tiles: the last element may sit on any thread
    relu_uncoalesced<<<covering_grid(threads, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
