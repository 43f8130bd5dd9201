// Blocks of 8 × 8 elements of C in a thread's registers, 64 multiply-adds for 16 floats of shared memory.
//
// Compute-bound, on the float32 units (no tensor cores) for every dtype: 16-bit inputs are widened on the way into
// shared memory. cuda_tiled_padded reads two floats a multiply-add and is bound by shared memory; here the ratio is 4 to
// 1 the other way. Slices of A (transposed) and B are double-buffered: the next one travels from DRAM into registers
// while this one is multiplied, and one barrier a slice remains. Tiles are 128 × 128; where that leaves multiprocessors
// idle, 64 × 64 with 4 × 4 a thread. Predicted: over half of the float32 peak at 4096³, several times cuda_tiled_padded.
//
// Reached on nvidia-h200 at 968ac8c4: 27.4 ms for bfloat16 M=8192,N=8192,K=8192, 40.2 TFLOP/s, 5.1 % of the compute
// ceiling, 0.0510 times as fast as torch_eager (unstable).
#include "../_cuda/float_dispatch.cuh"
#include "../_cuda/float_pack.cuh"
#include "product.cuh"
#include "tile_order.cuh"

namespace {

using namespace groundspeed;

constexpr int kThreads = 256;
constexpr int kSide = 16;  // threads along each side of a tile
constexpr int kQuad = 4;   // elements moved at a time

template <typename T>
struct alignas(kQuad * sizeof(T)) Quad {
  T lanes[kQuad];
};

// Four neighbours of a row, of which `left` lie inside; the others are 0.
template <typename T, bool kAligned>
__device__ __forceinline__ Quad<T> load_quad(const T* place, int left) {
  Quad<T> quad;
  if constexpr (kAligned) {
    if (left > 0) return *reinterpret_cast<const Quad<T>*>(place);
#pragma unroll
    for (int i = 0; i < kQuad; ++i) quad.lanes[i] = from_float<T>(0.0f);
  } else {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) quad.lanes[i] = i < left ? place[i] : from_float<T>(0.0f);
  }
  return quad;
}

// kTile is the side of C's tile. kAligned: K and N are multiples of four and every base address of a quad.
template <typename T, int kTile, bool kAligned>
__global__ void __launch_bounds__(kThreads, kAligned ? 2 : 1)
    matmul_register_kernel(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k,
                           int tiles_m, int tiles_n) {
  constexpr int kDepth = kThreads * kQuad / kTile;  // of a slice: one quad of A and one of B a thread
  constexpr int kOwn = kTile / kSide;               // rows, and columns, of C a thread
  constexpr int kGroups = kOwn / kQuad;             // of four neighbours, kSide * kQuad apart
  constexpr int kPitch = kTile + kQuad;             // shifts the columns that transposing writes to other banks
  __shared__ __align__(16) float a_slice[2][kDepth][kPitch];  // [k][row]
  __shared__ __align__(16) float b_slice[2][kDepth][kTile];   // [k][column]

  const TilePlace place = tile_place(blockIdx.x, tiles_m, tiles_n);
  const int first_row = place.row * kTile;
  const int first_column = place.column * kTile;
  const int thread = threadIdx.x;
  const int a_row = thread / (kDepth / kQuad);
  const int a_k = thread % (kDepth / kQuad) * kQuad;
  const int b_k = thread / (kTile / kQuad);
  const int b_column = thread % (kTile / kQuad) * kQuad;
  const int own_row = thread / kSide * kQuad;
  const int own_column = thread % kSide * kQuad;

  // Where this thread's next quads lie, and how many elements from there on belong to the matrices: along K (a_left,
  // b_left) both shrink by kDepth a slice; a row of A or a column of B outside has none.
  const T* a_place = a + static_cast<int64_t>(first_row + a_row) * k + a_k;
  const T* b_place = b + static_cast<int64_t>(b_k) * n + first_column + b_column;
  int a_left = first_row + a_row < m ? k - a_k : 0;
  int b_left = k - b_k;
  const auto load_a = [&] {
    const Quad<T> quad = load_quad<T, kAligned>(a_place, a_left);
    a_place += kDepth;
    a_left -= kDepth;
    return quad;
  };
  const auto load_b = [&] {
    const Quad<T> quad = load_quad<T, kAligned>(b_place, b_left > 0 ? n - first_column - b_column : 0);
    b_place += static_cast<int64_t>(kDepth) * n;
    b_left -= kDepth;
    return quad;
  };
  const auto keep = [&](int buffer, const Quad<T>& a_quad, const Quad<T>& b_quad) {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) a_slice[buffer][a_k + i][a_row] = to_float(a_quad.lanes[i]);
    *reinterpret_cast<float4*>(&b_slice[buffer][b_k][b_column]) =
        make_float4(to_float(b_quad.lanes[0]), to_float(b_quad.lanes[1]), to_float(b_quad.lanes[2]),
                    to_float(b_quad.lanes[3]));
  };

  float sums[kOwn][kOwn] = {};
  const int slices = (k + kDepth - 1) / kDepth;
  keep(0, load_a(), load_b());
  __syncthreads();
  for (int slice = 0; slice < slices; ++slice) {
    const int buffer = slice % 2;
    const bool more = slice + 1 < slices;
    Quad<T> a_next;
    Quad<T> b_next;
    if (more) {
      a_next = load_a();
      b_next = load_b();
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a_own[kOwn];
      float b_own[kOwn];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int skip = group * kSide * kQuad;
        *reinterpret_cast<float4*>(a_own + group * kQuad) =
            *reinterpret_cast<const float4*>(&a_slice[buffer][i][own_row + skip]);
        *reinterpret_cast<float4*>(b_own + group * kQuad) =
            *reinterpret_cast<const float4*>(&b_slice[buffer][i][own_column + skip]);
      }
#pragma unroll
      for (int row = 0; row < kOwn; ++row) {
#pragma unroll
        for (int column = 0; column < kOwn; ++column) sums[row][column] += a_own[row] * b_own[column];
      }
    }
    // The other buffer was last read before the barrier that ended the previous turn.
    if (more) keep(1 - buffer, a_next, b_next);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int row = first_row + own_row + i / kQuad * kSide * kQuad + i % kQuad;
    if (row >= m) break;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int column = first_column + own_column + group * kSide * kQuad;
      T* out = c + static_cast<int64_t>(row) * n + column;
      Quad<T> quad;
#pragma unroll
      for (int lane = 0; lane < kQuad; ++lane) quad.lanes[lane] = from_float<T>(sums[i][group * kQuad + lane]);
      if constexpr (kAligned) {
        if (column < n) *reinterpret_cast<Quad<T>*>(out) = quad;
      } else {
#pragma unroll
        for (int lane = 0; lane < kQuad; ++lane) {
          if (column + lane < n) out[lane] = quad.lanes[lane];
        }
      }
    }
  }
}

int64_t tiles(int64_t length, int tile) { return (length + tile - 1) / tile; }

template <typename T, int kTile>
void launch(const Product& p) {
  const auto is_quad_aligned = [](const Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % sizeof(Quad<T>) == 0;
  };
  const bool aligned = p.n % kQuad == 0 && p.k % kQuad == 0 && is_quad_aligned(p.a) && is_quad_aligned(p.b);
  const auto kernel = aligned ? matmul_register_kernel<T, kTile, true> : matmul_register_kernel<T, kTile, false>;
  const int64_t tiles_m = tiles(p.m, kTile);
  const int64_t tiles_n = tiles(p.n, kTile);
  kernel<<<static_cast<unsigned>(tiles_m * tiles_n), kThreads, 0, current_stream(p.a)>>>(
      static_cast<const T*>(p.a.data_ptr()), static_cast<const T*>(p.b.data_ptr()), static_cast<T*>(p.c.data_ptr()),
      static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), static_cast<int>(tiles_m),
      static_cast<int>(tiles_n));
}

Tensor run(Tensor left, Tensor right) {
  const Product p = product_of(left, right, "matmul/cuda_register");
  if (p.c.numel() == 0) return p.c;
  const bool large = tiles(p.m, 128) * tiles(p.n, 128) >= multiprocessors();
  dispatch_float(p.a, "matmul/cuda_register", [&](auto zero) {
    using T = decltype(zero);
    large ? launch<T, 128>(p) : launch<T, 64>(p);
  });
  check_launch("matmul/cuda_register");
  return p.c;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b) -> Tensor", run)
