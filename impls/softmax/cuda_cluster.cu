// A cluster of blocks a row, an eighth of a multiprocessor's registers each: wide rows, and loads that never pause.
//
// Memory-bound: 2·M·N·itemsize bytes. In cuda_block a row of 32768 elements fills a multiprocessor's registers, so that
// nothing is loaded while it is reduced and written. Here it is four blocks', and each multiprocessor holds blocks of
// four rows, which are at different stages; a maximum and a sum a block cross through distributed shared memory, at
// one barrier of the cluster. Predicted: cuda_block's time for rows that one block holds (up to 8192 elements), a tenth
// less beyond. Rows of up to 65536 elements; compute capability 9.0.
//
// It does not pay on an H200: 22.5 µs against cuda_block's 21.3 for bfloat16 rows of 32768. Presumably blocks of other
// rows fill the pause no better than cuda_block's own warps do, and the cluster's barrier comes on top; no profile has
// shown it. cuda_pipeline, which has the next row on its way, takes 18.1.
//
// Reached on nvidia-h200 at 968ac8c4: 130 µs for float32 M=8192,N=8192, 4.13 TB/s, 96 % of the memory ceiling, 2.12
// times as fast as torch_eager.
#include "../_cuda/softmax_cluster.cuh"

namespace {

using namespace groundspeed;

template <typename T, bool kVector>
__global__ void __launch_bounds__(kClusterThreads, kClusterResidents<kVector>)
    softmax_cluster(const T* __restrict__ x, T* __restrict__ y, int64_t length, int columns) {
  cluster_arrive();
  const ClusterSlice slice(length, columns);
  const int64_t start = slice.row * length + slice.from;
  float values[kClusterElements];
  load_slice<T, kClusterElements, kVector>(x + start, slice.own(), threadIdx.x, kClusterThreads, -CUDART_INF_F, values);
  softmax_in_cluster(values);
  store_slice<T, kClusterElements, kVector>(y + start, slice.own(), threadIdx.x, kClusterThreads, values);
}

Tensor run(Tensor input) {
  STD_TORCH_CHECK(input.dim() == 2 && input.size(1) <= kLongestClusterRow,
                  "softmax/cuda_cluster: expected [M, N], N at most ", kLongestClusterRow);
  const int64_t length = input.size(1);
  return elementwise(input, "softmax/cuda_cluster", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const auto kernel = rows_are_packs<T>(length, x, y) ? softmax_cluster<T, true> : softmax_cluster<T, false>;
    launch_clusters(kernel, size / length, length, stream, x, y, length);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
