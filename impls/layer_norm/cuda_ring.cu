// Rows through a ring in shared memory: loads never pause, and weight and bias stay in registers.
//
// Memory-bound: 2·M·N elements. In cuda_block a row of 32768 elements fills a multiprocessor's registers, so that
// nothing is loaded while it is reduced and written, and weight and bias come from L2 again for every row, as many
// bytes as the row itself. Here one thread copies chunks of the next rows into shared memory (cp.async.bulk) while the
// others pass over this row there: its sum, the squares of its deviations from the mean, the result. A chunk is given
// back as soon as it is written. A thread has the same columns of every row, so their weights, and the biases of rows
// up to 64 KiB, are loaded once. Rows of whole 16-byte packs, at most 128 KiB; compute capability 9.0.
//
// Predicted: 95 % of the memory ceiling for float32 rows of 32768, where cuda_block reaches 86 %; level with it on short
// rows. It is not so on an H200: 85 % there, level with cuda_block, and behind it on shorter rows. Three passes over
// shared memory, with a barrier after two of them, seem to cost as much as the pauses that the ring fills, or more; no
// profile of it was taken.
//
// Reached on nvidia-h200 at 968ac8c4: 148 µs for float32 M=2048,N=32768, 3.63 TB/s, 85 % of the memory ceiling, 1.78
// times as fast as torch_eager.
#include "../_cuda/row_ring.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Rows {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  int64_t count;
  int length;
  float epsilon;
};

template <typename T, int kThreads, int kChunks>
__global__ void __launch_bounds__(kThreads + kWarp, kRingResidents<kThreads>) layer_norm_ring(Rows<T> rows) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  constexpr int kPacks = kChunks * kRingPacks;
  constexpr bool kHoldBias = kChunks == 4;  // both, where the registers of a thread suffice
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float scratch[2][kWarp];
  RowRing<kThreads> ring(memory);
  ring.open();
  if (threadIdx.x >= kThreads) {
    if (threadIdx.x == kThreads) ring.feed(rows.x, static_cast<int64_t>(rows.length) * sizeof(T), rows.count);
    return;
  }
  const int packs = rows.length / kLanes;
  FloatPack<T> weight[kPacks], bias[kHoldBias ? kPacks : 1];
  load_share<kThreads>(rows.weight, packs, weight);
  if constexpr (kHoldBias) load_share<kThreads>(rows.bias, packs, bias);
  RingPlace place;
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x, place = ring.next(place, packs)) {
    ring.forget();
    for (FloatPack<T>& pack : weight) keep_packed(pack);
    for (FloatPack<T>& pack : bias) keep_packed(pack);
    float sum = 0.0f;
    ring.template pass<kChunks, true, false>(place, packs, [&](int, int, const unsigned char* at, auto) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
#pragma unroll
      for (int i = 0; i < kLanes; ++i) sum += to_float(pack.lanes[i]);
    });
    const float mean = ring_sum<kThreads>(sum, scratch[0]) / rows.length;
    float squares = 0.0f;
    ring.template pass<kChunks, false, false>(place, packs, [&](int, int, const unsigned char* at, auto) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float apart = to_float(pack.lanes[i]) - mean;
        squares = fmaf(apart, apart, squares);
      }
    });
    const float scale = rsqrtf(ring_sum<kThreads>(squares, scratch[1]) / rows.length + rows.epsilon);
    T* y = rows.y + row * rows.length;
    ring.template pass<kChunks, false, true>(place, packs, [&](int held, int number, const unsigned char* at, auto) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
      const FloatPack<T> shift = kHoldBias ? bias[kHoldBias ? held : 0] : load_pack(rows.bias + number * kLanes);
      FloatPack<T> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float normal = (to_float(pack.lanes[i]) - mean) * scale;
        result.lanes[i] = from_float<T>(fmaf(normal, to_float(weight[held].lanes[i]), to_float(shift.lanes[i])));
      }
      store_pack(y + number * kLanes, result);
    });
  }
}

Tensor run(Tensor input, Tensor weight, Tensor bias, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1) && bias.numel() == input.size(1),
                  "layer_norm/cuda_ring: expected x [M, N], weight [N] and bias [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type() && bias.scalar_type() == input.scalar_type(),
                  "layer_norm/cuda_ring: weight and bias must have the dtype of x");
  const Tensor scale = torch::stable::contiguous(weight), shift = torch::stable::contiguous(bias);
  return elementwise(input, "layer_norm/cuda_ring", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const int64_t length = input.size(1);
    const Rows<T> rows{x,           input_pointer<T>(scale),  input_pointer<T>(shift),    y,
                       size / length, static_cast<int>(length), static_cast<float>(epsilon)};
    STD_TORCH_CHECK(rows_are_packs<T>(length, rows.x, rows.weight, rows.bias, rows.y),
                    "layer_norm/cuda_ring: expected rows of whole 16-byte packs at multiples of 16 bytes");
    for_ring(length * sizeof(T), [&](auto threads, auto chunks) {
      launch_ring<RowRing<threads()>, threads()>(layer_norm_ring<T, threads(), chunks()>, input, rows.count, stream,
                                                 rows);
    });
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, Tensor bias, float epsilon) -> Tensor", run)
