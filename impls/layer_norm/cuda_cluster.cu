// A cluster of blocks a row, an eighth of a multiprocessor's registers each: wide rows, and loads that never pause.
//
// Memory-bound: 2·M·N elements, and weight and bias from L2. In cuda_block a row of 32768 elements fills a
// multiprocessor's registers, so that nothing is loaded while it is reduced and written. Here it is four blocks', and
// each multiprocessor holds blocks of four rows. A block's mean and squared deviations from it cross through distributed
// shared memory, at one barrier of the cluster, and merge exactly: Chan, Golub and LeVeque, "Updating formulae and a
// pairwise algorithm for computing sample variances" (1979). Predicted: a tenth less than cuda_block at 32768 elements.
// Rows of up to 65536 elements; compute capability 9.0.
//
// It does not pay on an H200: 154.1 µs against cuda_block's 146.8 for float32 rows of 32768. Presumably blocks of other
// rows fill the pause no better than cuda_block's own warps do, and the cluster's barrier comes on top; no profile has
// shown it.
//
// Reached on nvidia-h200 at 968ac8c4: 154 µs for float32 M=2048,N=32768, 3.49 TB/s, 82 % of the memory ceiling, 1.72
// times as fast as torch_eager.
#include "../_cuda/row_cluster.cuh"
#include "../_cuda/row_slice.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Rows {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  int64_t length;
  float epsilon;
};

struct Moments {
  float mean;
  float squares;  // of the deviations from it
};

// The moments of the whole row, from those of each block's columns.
__device__ __forceinline__ Moments merge(const ClusterSlice& slice, const float2 (&parts)[kMostClusterBlocks]) {
  Moments all{parts[0].x, parts[0].y};
  float count = static_cast<float>(slice.of_block(0));
  for (int rank = 1; rank < static_cast<int>(cluster_blocks()); ++rank) {
    const float more = static_cast<float>(slice.of_block(rank));
    const float together = count + more;
    const float apart = parts[rank].x - all.mean;
    all.mean += apart * (more / together);
    all.squares += parts[rank].y + apart * apart * (count * more / together);
    count = together;
  }
  return all;
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kClusterThreads, kClusterResidents<kVector>)
    layer_norm_cluster(Rows<T> rows, int columns) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  __shared__ float scratch[2][kWarp];
  __shared__ float2 parts[kMostClusterBlocks];
  cluster_arrive();
  const ClusterSlice slice(rows.length, columns);
  const int own = slice.own();
  const int64_t start = slice.row * rows.length + slice.from;
  float values[kClusterElements];
  load_slice<T, kClusterElements, kVector>(rows.x + start, own, threadIdx.x, kClusterThreads, 0.0f, values);
  const float mean = block_sum(slice_sum(values), scratch[0]) / own;
  float squares = 0.0f;
  for_packs<kClusterElements, kLanes>(own, [&](int first, int) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) squares = fmaf(values[first + i] - mean, values[first + i] - mean, squares);
  });
  squares = block_sum(squares, scratch[1]);
  cluster_wait();
  share(mean, squares, parts);
  const Moments row = merge(slice, parts);
  const float scale = rsqrtf(row.squares / rows.length + rows.epsilon);
  for_packs<kClusterElements, kLanes>(own, [&](int first, int column) {
    float weight[kLanes], bias[kLanes], result[kLanes];
    load_lanes(rows.weight + slice.from + column, weight);
    load_lanes(rows.bias + slice.from + column, bias);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result[i] = fmaf((values[first + i] - row.mean) * scale, weight[i], bias[i]);
    store_lanes(rows.y + start + column, result);
  });
}

Tensor run(Tensor input, Tensor weight, Tensor bias, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1) && bias.numel() == input.size(1),
                  "layer_norm/cuda_cluster: expected x [M, N], weight [N] and bias [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type() && bias.scalar_type() == input.scalar_type(),
                  "layer_norm/cuda_cluster: weight and bias must have the dtype of x");
  const int64_t length = input.size(1);
  STD_TORCH_CHECK(length <= kLongestClusterRow, "layer_norm/cuda_cluster: N must be at most ", kLongestClusterRow);
  const Tensor scale = torch::stable::contiguous(weight), shift = torch::stable::contiguous(bias);
  return elementwise(input, "layer_norm/cuda_cluster", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const Rows<T> rows{x, input_pointer<T>(scale), input_pointer<T>(shift), y, length, static_cast<float>(epsilon)};
    const bool packs = rows_are_packs<T>(length, rows.x, rows.weight, rows.bias, rows.y);
    const auto kernel = packs ? layer_norm_cluster<T, true> : layer_norm_cluster<T, false>;
    launch_clusters(kernel, size / length, length, stream, rows);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, Tensor bias, float epsilon) -> Tensor", run)
