// Two multiprocessors a row, and the next row always on its way into shared memory.
//
// Memory-bound: 2·M·N elements. In cuda_block a row of 32768 elements fills a multiprocessor's registers, so that
// nothing is loaded while it is reduced and written, and weight and bias come from L2 again for every row. Here a
// cluster of two blocks, one a multiprocessor, stays and walks over rows, half of the columns each: the halves of
// weight and bias fit into shared memory, read once, and that of the next row besides (cp.async, each thread its own
// packs, so without a barrier). The blocks tell each other mean and squared deviations of their halves (st.async),
// which merge exactly. Predicted: 95 % of the memory ceiling for float32 rows of 32768, where cuda_block reaches 86 %.
// Rows of 16385 to 32768 elements in whole 16-byte packs; compute capability 9.0.
//
// Reached on nvidia-h200 at 968ac8c4: 133 µs for float32 M=2048,N=32768, 4.03 TB/s, 94 % of the memory ceiling, 1.98
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"
#include "../_cuda/row_pair.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Rows {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  int length;
  float epsilon;
};

struct Moments {
  float mean;
  float squares;  // of the deviations from it
};

// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
__device__ __forceinline__ Moments merge(Moments one, float count, Moments other, float more) {
  const float apart = other.mean - one.mean;
  const float part = more / (count + more);
  return {fmaf(apart, part, one.mean), one.squares + other.squares + apart * apart * (count * part)};
}

// Halves of weight, bias and the next row.
template <typename T>
constexpr int kSharedBytes = 3 * kPairColumns * static_cast<int>(sizeof(T));

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads) layer_norm_pair(Rows<T> rows, int count) {
  using Slice = PairSlice<T, kMostRowThreads>;
  constexpr int kPacks = Slice::kPacks, kLanes = Slice::kLanes;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float scratch[2][kWarp];  // of one reduction each: the other's barrier lies between two uses
  __shared__ PairInbox inbox;
  T* weight = reinterpret_cast<T*>(memory);
  T* bias = weight + kPairColumns;
  T* next = bias + kPairColumns;
  open_inbox(inbox);
  const uint32_t rank = cluster_rank();
  const PairHalf half(rows.length, rank);
  const Slice slice(half.columns);
  const int step = static_cast<int>(gridDim.x) / kPair;
  const auto fetch = [&](int row) {
    if (row < count) copy_slice(next, rows.x + static_cast<int64_t>(row) * rows.length + half.from, slice);
    commit_copies();
  };
  int row = static_cast<int>(blockIdx.x) / kPair;
  fetch(row);
  copy_slice(weight, rows.weight + half.from, slice);
  copy_slice(bias, rows.bias + half.from, slice);
  commit_copies();
  cluster_wait();
  PairTurn turn;
#pragma unroll 1
  for (; row < count; row += step, turn.next()) {
    wait_copies<0>();
    FloatPack<T> packs[kPacks];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = slice.has(i) ? shared_pack(next + Slice::column(i)) : filled_pack<T>(0.0f);
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) sum += to_float(packs[i].lanes[lane]);
    }
    fetch(row + step);  // behind the reads above, whose results have been added: nothing is overwritten too early
    Moments own;
    own.mean = block_sum(sum, scratch[0]) / half.columns;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (slice.has(i)) {
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          const float apart = to_float(packs[i].lanes[lane]) - own.mean;
          squares = fmaf(apart, apart, squares);
        }
      }
    }
    own.squares = block_sum(squares, scratch[1]);
    const float2 numbers = exchange({own.mean, own.squares}, inbox, turn, rank);
    const Moments other{numbers.x, numbers.y};
    // In one order in both blocks, so that they round alike.
    const Moments whole = rank == 0 ? merge(own, half.columns, other, half.others)
                                    : merge(other, half.others, own, half.columns);
    const float scale = rsqrtf(whole.squares / rows.length + rows.epsilon);
    T* y = rows.y + static_cast<int64_t>(row) * rows.length + half.from;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (slice.has(i)) {
        const FloatPack<T> factor = shared_pack(weight + Slice::column(i));
        const FloatPack<T> shift = shared_pack(bias + Slice::column(i));
        FloatPack<T> result;
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          const float normal = (to_float(packs[i].lanes[lane]) - whole.mean) * scale;
          result.lanes[lane] = from_float<T>(fmaf(normal, to_float(factor.lanes[lane]), to_float(shift.lanes[lane])));
        }
        store_pack(y + Slice::column(i), result);
      }
    }
  }
}

Tensor run(Tensor input, Tensor weight, Tensor bias, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1) && bias.numel() == input.size(1),
                  "layer_norm/cuda_pair: expected x [M, N], weight [N] and bias [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type() && bias.scalar_type() == input.scalar_type(),
                  "layer_norm/cuda_pair: weight and bias must have the dtype of x");
  const int64_t length = input.size(1);
  check_pair_row(length, "layer_norm/cuda_pair");
  const Tensor scale = torch::stable::contiguous(weight), shift = torch::stable::contiguous(bias);
  return elementwise(input, "layer_norm/cuda_pair", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const Rows<T> rows{x, input_pointer<T>(scale),  input_pointer<T>(shift),
                       y, static_cast<int>(length), static_cast<float>(epsilon)};
    STD_TORCH_CHECK(rows_are_packs<T>(length, rows.x, rows.weight, rows.bias, rows.y),
                    "layer_norm/cuda_pair: rows must be whole packs of 16 bytes, and every tensor begin at one");
    launch_pairs(layer_norm_pair<T>, input, size / length, kSharedBytes<T>, stream, rows);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, Tensor bias, float epsilon) -> Tensor", run)
