// A block a row, the row in registers between its sum of squares and its output.
//
// Memory-bound: 2·M·N elements, and the weight from L2. One reduction, one barrier; sums are float32, so half precision
// cannot overflow. Predicted: near the copy bandwidth from a thousand elements a row on. Rows beyond 32768 elements,
// and unaligned ones beyond 4096, are read twice, the second time mostly from L2.
//
// Reached on nvidia-h200 at 968ac8c4: 134 µs for float32 M=2048,N=32768, 4.00 TB/s, 93 % of the memory ceiling, 1.46
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"
#include "../_cuda/row_block.cuh"
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

// Writes values · scale · weight, pack by pack, for `length` columns beginning at `offset`.
template <typename T, int kElements, bool kVector>
__device__ __forceinline__ void store_scaled(const Rows<T>& rows, int64_t start, int64_t offset, int length,
                                             const float (&values)[kElements], float scale) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  for_packs<kElements, kLanes>(length, [&](int first, int column) {
    float weight[kLanes], result[kLanes];
    load_lanes(rows.weight + offset + column, weight);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result[i] = values[first + i] * scale * weight[i];
    store_lanes(rows.y + start + offset + column, result);
  });
}

template <int kElements>
__device__ __forceinline__ float sum_of_squares(const float (&values)[kElements]) {
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kElements; ++i) squares = fmaf(values[i], values[i], squares);
  return squares;
}

template <typename T, int kElements, bool kVector>
__global__ void __launch_bounds__(kRowThreads<kElements>) rms_norm_block(Rows<T> rows) {
  __shared__ float scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * rows.length;
  const int length = static_cast<int>(rows.length);
  float values[kElements];
  load_slice<T, kElements, kVector>(rows.x + start, length, threadIdx.x, blockDim.x, 0.0f, values);
  const float scale = rsqrtf(block_sum(sum_of_squares(values), scratch) / length + rows.epsilon);
  store_scaled<T, kElements, kVector>(rows, start, 0, length, values, scale);
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostRowThreads) rms_norm_long_row(Rows<T> rows) {
  __shared__ float scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * rows.length;
  constexpr int kChunk = kRowChunk<kVector>;
  float values[kChunk];
  const auto load = [&](int64_t from, int length) {
    load_slice<T, kChunk, kVector>(rows.x + start + from, length, threadIdx.x, blockDim.x, 0.0f, values);
  };
  float squares = 0.0f;
  for_chunks<kVector>(rows.length, [&](int64_t from, int length) {
    load(from, length);
    squares += sum_of_squares(values);
  });
  const float scale = rsqrtf(block_sum(squares, scratch) / rows.length + rows.epsilon);
  for_chunks<kVector>(rows.length, [&](int64_t from, int length) {
    load(from, length);
    store_scaled<T, kChunk, kVector>(rows, start, from, length, values, scale);
  });
}

template <typename T>
void launch(const Rows<T>& rows, unsigned int count, cudaStream_t stream) {
  const bool packs = rows_are_packs<T>(rows.length, rows.x, rows.weight, rows.y);
  const auto held = [&](auto elements, auto by_packs, unsigned int threads) {
    rms_norm_block<T, elements(), by_packs()><<<count, threads, 0, stream>>>(rows);
  };
  const auto walked = [&](auto by_packs) {
    rms_norm_long_row<T, by_packs()><<<count, kMostRowThreads, 0, stream>>>(rows);
  };
  for_row_length(rows.length, packs, held, walked);
}

Tensor run(Tensor input, Tensor weight, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1),
                  "rms_norm/cuda_block: expected x [M, N] and weight [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "rms_norm/cuda_block: weight must have the dtype of x");
  const Tensor scale = torch::stable::contiguous(weight);
  return elementwise(input, "rms_norm/cuda_block", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const int64_t length = input.size(1);
    launch<T>({x, input_pointer<T>(scale), y, length, static_cast<float>(epsilon)}, covering_grid(size / length, 1),
              stream);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, float epsilon) -> Tensor", run)
