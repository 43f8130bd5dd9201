// A cluster of blocks a row, an eighth of a multiprocessor's registers each: wide rows, and loads that never pause.
//
// Memory-bound: 2·M·N elements, and the weight from L2. In cuda_block a row of 32768 elements fills a multiprocessor's
// registers, so that nothing is loaded while it is reduced and written. Here it is four blocks', and each multiprocessor
// holds blocks of four rows. A block's sum of squares crosses through distributed shared memory, at one barrier of the
// cluster. Predicted: a tenth less than cuda_block at 32768 elements. Rows of up to 65536 elements; compute capability
// 9.0.
//
// It does not pay on an H200: 154.7 µs against cuda_block's 134.3 for float32 rows of 32768. Presumably blocks of other
// rows fill the pause no better than cuda_block's own warps do, and the cluster's barrier comes on top; no profile has
// shown it.
//
// Reached on nvidia-h200 at 968ac8c4: 155 µs for float32 M=2048,N=32768, 3.47 TB/s, 81 % of the memory ceiling, 1.26
// times as fast as torch_eager.
#include "../_cuda/row_cluster.cuh"
#include "../_cuda/row_slice.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Rows {
  const T* x;
  const T* weight;
  T* y;
  int64_t length;
  float epsilon;
};

template <typename T, bool kVector>
__global__ void __launch_bounds__(kClusterThreads, kClusterResidents<kVector>)
    rms_norm_cluster(Rows<T> rows, int columns) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  __shared__ float scratch[kWarp];
  __shared__ float2 parts[kMostClusterBlocks];
  cluster_arrive();
  const ClusterSlice slice(rows.length, columns);
  const int64_t start = slice.row * rows.length + slice.from;
  float values[kClusterElements];
  load_slice<T, kClusterElements, kVector>(rows.x + start, slice.own(), threadIdx.x, kClusterThreads, 0.0f, values);
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kClusterElements; ++i) squares = fmaf(values[i], values[i], squares);
  squares = block_sum(squares, scratch);
  cluster_wait();
  share(squares, 0.0f, parts);
  float sum = 0.0f;
  for (int rank = 0; rank < static_cast<int>(cluster_blocks()); ++rank) sum += parts[rank].x;
  const float scale = rsqrtf(sum / rows.length + rows.epsilon);
  for_packs<kClusterElements, kLanes>(slice.own(), [&](int first, int column) {
    float weight[kLanes], result[kLanes];
    load_lanes(rows.weight + slice.from + column, weight);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result[i] = values[first + i] * scale * weight[i];
    store_lanes(rows.y + start + column, result);
  });
}

Tensor run(Tensor input, Tensor weight, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1),
                  "rms_norm/cuda_cluster: expected x [M, N] and weight [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "rms_norm/cuda_cluster: weight must have the dtype of x");
  const int64_t length = input.size(1);
  STD_TORCH_CHECK(length <= kLongestClusterRow, "rms_norm/cuda_cluster: N must be at most ", kLongestClusterRow);
  const Tensor scale = torch::stable::contiguous(weight);
  return elementwise(input, "rms_norm/cuda_cluster", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const Rows<T> rows{x, input_pointer<T>(scale), y, length, static_cast<float>(epsilon)};
    const bool packs = rows_are_packs<T>(length, rows.x, rows.weight, rows.y);
    const auto kernel = packs ? rms_norm_cluster<T, true> : rms_norm_cluster<T, false>;
    launch_clusters(kernel, size / length, length, stream, rows);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, float epsilon) -> Tensor", run)
