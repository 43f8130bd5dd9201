// Rows through a ring in shared memory: loads never pause, and the weight stays in registers.
//
// Memory-bound: 2·M·N elements. In cuda_block a row of 32768 elements fills a multiprocessor's registers, so that
// nothing is loaded while it is reduced and written, and the weight comes from L2 again for every row. Here one thread
// copies chunks of the next rows into shared memory (cp.async.bulk) while the others pass over this row there twice: the
// sum of its squares, the result. A chunk is given back as soon as it is written. A thread has the same columns of every
// row, so their weights are loaded once. Rows of whole 16-byte packs, at most 128 KiB; compute capability 9.0.
//
// Predicted: 95 % of the memory ceiling for float32 rows of 32768; level with cuda_block on short rows. On an H200 the
// first is nearly so, and one per cent ahead of cuda_block; on shorter rows it is behind, the more so the shorter.
//
// Reached on nvidia-h200 at 968ac8c4: 133 µs for float32 M=2048,N=32768, 4.03 TB/s, 94 % of the memory ceiling, 1.47
// times as fast as torch_eager.
#include "../_cuda/row_ring.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Rows {
  const T* x;
  const T* weight;
  T* y;
  int64_t count;
  int length;
  float epsilon;
};

template <typename T, int kThreads, int kChunks>
__global__ void __launch_bounds__(kThreads + kWarp, kRingResidents<kThreads>) rms_norm_ring(Rows<T> rows) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  constexpr int kPacks = kChunks * kRingPacks;
  extern __shared__ __align__(128) unsigned char memory[];
  // Two scratches in turn: a slow warp may still read row i's while a fast one writes row i+1's.
  __shared__ float scratch[2][kWarp];
  RowRing<kThreads> ring(memory);
  ring.open();
  if (threadIdx.x >= kThreads) {
    if (threadIdx.x == kThreads) ring.feed(rows.x, static_cast<int64_t>(rows.length) * sizeof(T), rows.count);
    return;
  }
  const int packs = rows.length / kLanes;
  FloatPack<T> weight[kPacks];
  load_share<kThreads>(rows.weight, packs, weight);
  RingPlace place;
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x, place = ring.next(place, packs), turn ^= 1) {
    ring.forget();
    for (FloatPack<T>& pack : weight) keep_packed(pack);
    float squares = 0.0f;
    ring.template pass<kChunks, true, false>(place, packs, [&](int, int, const unsigned char* at, auto) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
#pragma unroll
      for (int i = 0; i < kLanes; ++i) squares = fmaf(to_float(pack.lanes[i]), to_float(pack.lanes[i]), squares);
    });
    const float scale = rsqrtf(ring_sum<kThreads>(squares, scratch[turn]) / rows.length + rows.epsilon);
    T* y = rows.y + row * rows.length;
    ring.template pass<kChunks, false, true>(place, packs, [&](int held, int number, const unsigned char* at, auto) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
      FloatPack<T> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        result.lanes[i] = from_float<T>(to_float(pack.lanes[i]) * scale * to_float(weight[held].lanes[i]));
      }
      store_pack(y + number * kLanes, result);
    });
  }
}

Tensor run(Tensor input, Tensor weight, double epsilon) {
  STD_TORCH_CHECK(input.dim() == 2 && weight.numel() == input.size(1),
                  "rms_norm/cuda_ring: expected x [M, N] and weight [N]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "rms_norm/cuda_ring: weight must have the dtype of x");
  const Tensor scale = torch::stable::contiguous(weight);
  return elementwise(input, "rms_norm/cuda_ring", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const int64_t length = input.size(1);
    const Rows<T> rows{x,           input_pointer<T>(scale),  y,
                       size / length, static_cast<int>(length), static_cast<float>(epsilon)};
    STD_TORCH_CHECK(rows_are_packs<T>(length, rows.x, rows.weight, rows.y),
                    "rms_norm/cuda_ring: expected rows of whole 16-byte packs at multiples of 16 bytes");
    for_ring(length * sizeof(T), [&](auto threads, auto chunks) {
      launch_ring<RowRing<threads()>, threads()>(rms_norm_ring<T, threads(), chunks()>, input, rows.count, stream, rows);
    });
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weight, float epsilon) -> Tensor", run)
