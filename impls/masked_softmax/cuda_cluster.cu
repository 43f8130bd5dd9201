// A cluster of blocks a row, an eighth of a multiprocessor's registers each: wide rows, and loads that never pause.
//
// Memory-bound: M·N elements and as many bytes of mask read, M·N elements written. What softmax/cuda_cluster does for
// wide rows, with the mask applied on the way in. Predicted: a tenth less than cuda_block at 32768 elements, where that
// holds one row a multiprocessor. Rows of up to 65536 elements; compute capability 9.0.
//
// It does not pay on an H200: 164.6 µs against cuda_block's 163.5 for float32 rows of 32768. Presumably blocks of other
// rows fill the pause no better than cuda_block's own warps do, and the cluster's barrier comes on top; no profile has
// shown it.
//
// Reached on nvidia-h200 at 968ac8c4: 177 µs for float32 M=16384,N=4096, 3.42 TB/s, 79 % of the memory ceiling, 3.19
// times as fast as torch_eager.
#include "../_cuda/mask_pack.cuh"
#include "../_cuda/softmax_cluster.cuh"

namespace {

using namespace groundspeed;

template <typename T, bool kVector>
__global__ void __launch_bounds__(kClusterThreads, kClusterResidents<kVector>)
    masked_softmax_cluster(const T* __restrict__ x, const uint8_t* __restrict__ mask, T* __restrict__ y,
                           int64_t length, int columns) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  cluster_arrive();
  const ClusterSlice slice(length, columns);
  const int64_t start = slice.row * length + slice.from;
  float values[kClusterElements];
  load_slice<T, kClusterElements, kVector>(x + start, slice.own(), threadIdx.x, kClusterThreads, -CUDART_INF_F, values);
  for_packs<kClusterElements, kLanes>(slice.own(), [&](int first, int column) {
    const MaskPack<kLanes> masked = load_mask<kLanes>(mask + start + column);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[first + i] = masked.lanes[i] ? -CUDART_INF_F : values[first + i];
  });
  softmax_in_cluster(values);
  store_slice<T, kClusterElements, kVector>(y + start, slice.own(), threadIdx.x, kClusterThreads, values);
}

Tensor run(Tensor input, Tensor masked) {
  STD_TORCH_CHECK(input.dim() == 2 && masked.dim() == 2 && masked.size(0) == input.size(0) &&
                      masked.size(1) == input.size(1) && masked.scalar_type() == ScalarType::Byte,
                  "masked_softmax/cuda_cluster: expected x [M, N] and mask [M, N] of uint8");
  const int64_t length = input.size(1);
  STD_TORCH_CHECK(length <= kLongestClusterRow, "masked_softmax/cuda_cluster: N must be at most ", kLongestClusterRow);
  const Tensor contiguous_mask = torch::stable::contiguous(masked);
  return elementwise(input, "masked_softmax/cuda_cluster", [&](const auto* x, auto* y, int64_t size, cudaStream_t on) {
    using T = std::remove_pointer_t<decltype(y)>;
    const uint8_t* mask = input_pointer<uint8_t>(contiguous_mask);
    const bool packs = rows_are_packs<T>(length, x, mask, y);
    const auto kernel = packs ? masked_softmax_cluster<T, true> : masked_softmax_cluster<T, false>;
    launch_clusters(kernel, size / length, length, on, x, mask, y, length);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor mask) -> Tensor", run)
