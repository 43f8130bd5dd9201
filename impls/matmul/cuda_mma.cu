// Tensor cores by mma.sync, 16 × 8 × 16 products from registers, slices of K arriving by cp.async.
//
// Compute-bound: 2·M·N·K FLOPs. A block owns 128 × 256 elements of C, a warp 64 × 64 of them in 128 float32 registers a
// thread; per slice of 64 along K it reads (64 + 64)·64 elements from shared memory for 64·64·64 multiply-adds. Three
// slices are in shared memory, two of them on their way while one is multiplied, and the fragments of the next k-step
// are loaded before the products of this one are issued. Shared memory is swizzled (16-byte chunk ^ row mod 8), so that
// neither the copies nor ldmatrix meet in a bank. Small products use 64 × 64 tiles to fill the GPU. Rows that are no
// multiple of 16 bytes long are gathered element by element. Predicted: 60 to 65 % of Hopper's peak at most, since its
// full rate is reserved to wgmma; several times cuda_register.
//
// Reached on nvidia-h200 at 968ac8c4: 2.25 ms for bfloat16 M=8192,N=8192,K=8192, 489 TFLOP/s, 63 % of the compute
// ceiling, 0.621 times as fast as torch_eager (unstable).
#include "../_cuda/float_pack.cuh"
#include "../_cuda/fragment_store.cuh"
#include "../_cuda/mma.cuh"
#include "product.cuh"
#include "tile_order.cuh"

namespace {

using namespace groundspeed;

constexpr int kDepth = 64;           // of a slice along K
constexpr int kChunk = 8;            // 16-bit elements in 16 bytes
constexpr int kStep = 16;            // of one mma along K
constexpr int kSteps = kDepth / kStep;

template <int kRows_, int kColumns_, int kWarpRows_, int kWarpColumns_, int kStages_>
struct Tile {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kWarpRows = kWarpRows_;
  static constexpr int kWarpColumns = kWarpColumns_;
  static constexpr int kStages = kStages_;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * 32;
  static constexpr int kBytesA = kRows * kDepth * 2;
  static constexpr int kBytesB = kDepth * kColumns * 2;
  static constexpr int kSharedBytes = kStages * (kBytesA + kBytesB);
};

using LargeTile = Tile<128, 256, 64, 64, 3>;
using SmallTile = Tile<64, 64, 32, 32, 4>;

// A slice's rows are kChunks chunks of 16 bytes; chunk c of row r lies at place c ^ (r % 8) of its row. Eight rows of one
// chunk, which is what ldmatrix reads at a time, then cover all 32 banks.
template <int kChunks>
__device__ __forceinline__ uint32_t swizzled(int row, int chunk) {
  return (row * kChunks + (chunk ^ (row % 8))) * 16;
}

// Puts the chunk at `source` into shared memory, of which `left` elements lie inside the matrix.
template <typename T, bool kAligned>
__device__ __forceinline__ void fetch_chunk(uint32_t destination, unsigned char* generic, const T* source, int left) {
  if constexpr (kAligned) {
    copy_async16(destination, source, left > 0);
  } else {
    FloatPack<T> pack = filled_pack<T>(0.0f);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      if (i < left) pack.lanes[i] = source[i];
    }
    *reinterpret_cast<FloatPack<T>*>(generic) = pack;
  }
}

// One thread's share in fetching the slices of a matrix: one chunk in every kRowsApart-th row of a slice, always in the
// same column of chunks. kRowsApart is a multiple of 8, so the swizzle is the same in all of them.
template <typename T, int kRows, int kChunks, int kThreads, bool kAligned>
struct Share {
  static constexpr int kRowsApart = kThreads / kChunks;
  static_assert(kRowsApart % 8 == 0 && kRows % kRowsApart == 0);

  int row;          // in the slice, the first of this thread's rows
  int chunk;        // in the row
  uint32_t offset;  // in the slice, of the first chunk

  __device__ __forceinline__ Share()
      : row(threadIdx.x / kChunks), chunk(threadIdx.x % kChunks), offset(swizzled<kChunks>(row, chunk)) {}

  // `source` is this thread's first chunk, `stride` the elements in a row of the matrix; of the slice, the first
  // `rows_left` rows lie inside the matrix, and `columns_left` elements from this thread's chunk on.
  __device__ __forceinline__ void fetch(unsigned char* slice, const T* source, int stride, int rows_left,
                                        int columns_left) const {
    const uint32_t destination = shared_address(slice) + offset;
#pragma unroll
    for (int i = 0; i < kRows / kRowsApart; ++i) {
      const int down = i * kRowsApart;
      const int left = row + down < rows_left ? columns_left : 0;
      fetch_chunk<T, kAligned>(destination + down * kChunks * 16, slice + offset + down * kChunks * 16,
                               source + static_cast<int64_t>(down) * stride, left);
    }
  }
};

// The fragments of one k-step that a warp multiplies: kWarpRows / 16 of A, kWarpColumns / 16 pairs of B.
template <typename Tile>
struct Fragments {
  uint32_t a[Tile::kWarpRows / 16][4];
  uint32_t b[Tile::kWarpColumns / 16][4];  // b[j][0], [1]: columns 0 to 7 of the pair; [2], [3]: 8 to 15
};

// `a_lane` and `b_lane` are the swizzled addresses at which this lane names a row of the first fragments in a slice.
// Going on by 2, 4 or 6 chunks flips bits 5 and 6: these bits are clear in the first fragment's chunk, or fewer fragments
// follow than would carry, and the swizzle is an exclusive or as well.
template <typename Tile>
__device__ __forceinline__ void load_fragments(Fragments<Tile>& out, uint32_t a_lane, uint32_t b_lane, int step) {
#pragma unroll
  for (int i = 0; i < Tile::kWarpRows / 16; ++i) {
    load_matrices(out.a[i], (a_lane ^ (step * 32)) + i * 16 * kDepth * 2);
  }
#pragma unroll
  for (int j = 0; j < Tile::kWarpColumns / 16; ++j) {
    load_matrices_transposed(out.b[j], (b_lane ^ (j * 32)) + step * kStep * Tile::kColumns * 2);
  }
}

template <typename T, typename Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads)
    matmul_mma_kernel(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k,
                      int tiles_m, int tiles_n) {
  extern __shared__ __align__(128) unsigned char slices[];
  unsigned char* a_slices = slices;
  unsigned char* b_slices = slices + Tile::kStages * Tile::kBytesA;
  const TilePlace tile = tile_place(blockIdx.x, tiles_m, tiles_n);
  const int first_row = tile.row * Tile::kRows;
  const int first_column = tile.column * Tile::kColumns;
  const int depth = (k + kDepth - 1) / kDepth;

  constexpr int kChunksA = kDepth / kChunk;
  constexpr int kChunksB = Tile::kColumns / kChunk;
  const Share<T, Tile::kRows, kChunksA, Tile::kThreads, kAligned> a_share;
  const Share<T, kDepth, kChunksB, Tile::kThreads, kAligned> b_share;
  const T* a_source = a + static_cast<int64_t>(first_row + a_share.row) * k + a_share.chunk * kChunk;
  const T* b_source = b + static_cast<int64_t>(b_share.row) * n + first_column + b_share.chunk * kChunk;
  // Slices are fetched in order, each once.
  const auto fetch = [&](int slice) {
    if (slice < depth) {
      const int stage = slice % Tile::kStages;
      const int k_left = k - slice * kDepth;
      a_share.fetch(a_slices + stage * Tile::kBytesA, a_source, k, m - first_row, k_left - a_share.chunk * kChunk);
      b_share.fetch(b_slices + stage * Tile::kBytesB, b_source, n, k_left,
                    n - first_column - b_share.chunk * kChunk);
      a_source += kDepth;
      b_source += static_cast<int64_t>(kDepth) * n;
    }
    commit_copies();  // an empty group too, so that groups keep counting slices
  };

  // Lanes 0 to 15 name the rows of the left two 8 x 8 matrices of a fragment, lanes 16 to 31 of the right two.
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / Tile::kWarpsAcross * Tile::kWarpRows;
  const int warp_column = warp % Tile::kWarpsAcross * Tile::kWarpColumns;
  const uint32_t a_lane = shared_address(a_slices) + swizzled<kChunksA>(warp_row + lane % 16, lane / 16);
  const uint32_t b_lane = shared_address(b_slices) + swizzled<kChunksB>(lane % 16, warp_column / kChunk + lane / 16);
  const auto load = [&](Fragments<Tile>& out, int slice, int step) {
    const int stage = slice % Tile::kStages;
    load_fragments<Tile>(out, a_lane + stage * Tile::kBytesA, b_lane + stage * Tile::kBytesB, step);
  };

  float sums[Tile::kWarpRows / 16][Tile::kWarpColumns / 8][4] = {};
  Fragments<Tile> fragments[2];
#pragma unroll
  for (int slice = 0; slice < Tile::kStages - 1; ++slice) fetch(slice);
  wait_copies<Tile::kStages - 2>();
  __syncthreads();
  if (depth > 0) load(fragments[0], 0, 0);
  for (int slice = 0; slice < depth; ++slice) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // Overwrites the slice before this one, which every warp left before the last barrier.
      if (step == 0) fetch(slice + Tile::kStages - 1);
      if (step == kSteps - 1) {
        wait_copies<Tile::kStages - 2>();
        __syncthreads();
      }
      // After the last slice this loads what nobody will multiply.
      load(fragments[(step + 1) % 2], step == kSteps - 1 ? slice + 1 : slice, (step + 1) % kSteps);
      Fragments<Tile>& now = fragments[step % 2];
#pragma unroll
      for (int i = 0; i < Tile::kWarpRows / 16; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kWarpColumns / 8; ++j) {
          multiply_accumulate<T>(sums[i][j], now.a[i], now.b[j / 2][j % 2 * 2], now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < Tile::kWarpRows / 8; ++i) {
    const int row = first_row + warp_row + i * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < Tile::kWarpColumns / 8; j += 2) {
      const int column = first_column + warp_column + j * 8;
      const int left = row < m ? n - column : 0;
      const float* pair = sums[i / 2][j] + i % 2 * 2;
      const float* next = sums[i / 2][j + 1] + i % 2 * 2;
      T* place = c + static_cast<int64_t>(row) * n + column;
      if constexpr (kAligned) {
        store_two_tiles(place, left, pair[0], pair[1], next[0], next[1]);
      } else {
        const int own = lane % 4 * 2;
        if (own < left) place[own] = from_float<T>(pair[0]);
        if (own + 1 < left) place[own + 1] = from_float<T>(pair[1]);
        if (own + 8 < left) place[own + 8] = from_float<T>(next[0]);
        if (own + 9 < left) place[own + 9] = from_float<T>(next[1]);
      }
    }
  }
}

int64_t tiles(int64_t length, int tile) { return (length + tile - 1) / tile; }

template <typename T, typename Tile, bool kAligned>
void launch(const Product& p) {
  const auto kernel = matmul_mma_kernel<T, Tile, kAligned>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes);
  STD_TORCH_CHECK(error == cudaSuccess, "matmul/cuda_mma: ", cudaGetErrorString(error));
  const int64_t tiles_m = tiles(p.m, Tile::kRows);
  const int64_t tiles_n = tiles(p.n, Tile::kColumns);
  kernel<<<static_cast<unsigned>(tiles_m * tiles_n), Tile::kThreads, Tile::kSharedBytes, current_stream(p.a)>>>(
      static_cast<const T*>(p.a.data_ptr()), static_cast<const T*>(p.b.data_ptr()), static_cast<T*>(p.c.data_ptr()),
      static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), static_cast<int>(tiles_m),
      static_cast<int>(tiles_n));
}

template <typename T>
void launch_for_shape(const Product& p) {
  const bool aligned = p.k % kChunk == 0 && p.n % kChunk == 0 && is_aligned16(p.a.data_ptr()) &&
                       is_aligned16(p.b.data_ptr());
  if (!aligned) return launch<T, SmallTile, false>(p);
  // A large tile is worth a quarter of the multiprocessors left idle, not more.
  const int64_t large = tiles(p.m, LargeTile::kRows) * tiles(p.n, LargeTile::kColumns);
  large * 4 >= multiprocessors() * 3 ? launch<T, LargeTile, true>(p) : launch<T, SmallTile, true>(p);
}

Tensor run(Tensor left, Tensor right) {
  const Product p = product_of(left, right, "matmul/cuda_mma");
  if (p.c.numel() == 0) return p.c;
  switch (p.a.scalar_type()) {
    case ScalarType::Half:
      launch_for_shape<__half>(p);
      break;
    case ScalarType::BFloat16:
      launch_for_shape<__nv_bfloat16>(p);
      break;
    default:
      STD_TORCH_CHECK(false, "matmul/cuda_mma: expected float16 or bfloat16");
  }
  check_launch("matmul/cuda_mma");
  return p.c;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b) -> Tensor", run)
