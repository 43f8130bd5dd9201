// Products by mma.sync, for rows of any length and every GPU since sm_80.
//
// Like matmul/cuda_mma, with tiles of 128 × 128 sums, a warp 64 × 32 of them, three slices of 64 along K in shared
// memory by cp.async, and two blocks a multiprocessor, which hide each other's ldmatrix and epilogue. Rows that are
// no multiples of 16 bytes are gathered element by element.
//
// With two sides a tile has 64 columns of either right factor, in stripes of 16: each warp then holds both sums of the
// same 16 columns, the first side's in its first two 8-column fragments.
#pragma once

#include "../matmul/tile_order.cuh"
#include "fragment_store.cuh"
#include "mma.cuh"
#include "product_operands.cuh"

namespace groundspeed {

namespace ampere {

constexpr int kRows = 128;
constexpr int kColumns = 128;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;
constexpr int kWarpsAcross = kColumns / kWarpColumns;
constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * 32;
constexpr int kStages = 3;
constexpr int kDepth = 64;  // of a slice along K
constexpr int kStep = 16;   // of one mma along K
constexpr int kSteps = kDepth / kStep;
constexpr int kChunk = 8;  // 16-bit elements in 16 bytes
constexpr int kStripe = 16;
constexpr int kBytesA = kRows * kDepth * 2;
constexpr int kBytesB = kDepth * kColumns * 2;
constexpr int kSharedBytes = kStages * (kBytesA + kBytesB);

// A slice's rows are kChunks chunks of 16 bytes; chunk c of row r lies at place c ^ (r % 8) of its row. Eight rows of
// one chunk, which is what ldmatrix reads at a time, then cover all 32 banks.
template <int kChunks>
__device__ __forceinline__ uint32_t swizzled(int row, int chunk) {
  return (row * kChunks + (chunk ^ (row % 8))) * 16;
}

// Puts the chunk at `source` into shared memory, of which `left` elements lie inside the matrix.
template <typename T, bool kAligned>
__device__ __forceinline__ void fetch_chunk(unsigned char* destination, const T* source, int left) {
  if constexpr (kAligned) {
    copy_async16(shared_address(destination), source, left > 0);
  } else {
    FloatPack<T> pack = filled_pack<T>(0.0f);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      if (i < left) pack.lanes[i] = source[i];
    }
    *reinterpret_cast<FloatPack<T>*>(destination) = pack;
  }
}

// One thread's share in fetching a slice of kSliceRows rows: one chunk in every kRowsApart-th row, always in the same
// column of chunks. kRowsApart is a multiple of 8, so the swizzle is the same in all of them.
template <typename T, int kSliceRows, int kChunks, bool kAligned>
struct Share {
  static constexpr int kRowsApart = kThreads / kChunks;
  static_assert(kRowsApart % 8 == 0 && kSliceRows % kRowsApart == 0);
  int row;
  int chunk;

  __device__ __forceinline__ Share() : row(threadIdx.x / kChunks), chunk(threadIdx.x % kChunks) {}

  // `source` is this thread's first chunk, `stride` the elements in a row of the matrix; of the slice, the first
  // `rows_left` rows lie inside the matrix, and `columns_left` elements from this thread's chunk on.
  __device__ __forceinline__ void fetch(unsigned char* slice, const T* source, int stride, int rows_left,
                                        int columns_left) const {
    unsigned char* destination = slice + swizzled<kChunks>(row, chunk);
#pragma unroll
    for (int i = 0; i < kSliceRows / kRowsApart; ++i) {
      const int down = i * kRowsApart;
      fetch_chunk<T, kAligned>(destination + down * kChunks * 16, source + static_cast<int64_t>(down) * stride,
                               row + down < rows_left ? columns_left : 0);
    }
  }
};

// The fragments of one k-step that a warp multiplies.
struct Fragments {
  uint32_t a[kWarpRows / 16][4];
  uint32_t b[kWarpColumns / 16][4];  // b[j][0], [1]: columns 0 to 7 of the pair; [2], [3]: 8 to 15
};

// `a_lane` and `b_lane` are the swizzled addresses at which this lane names a row of the first fragments in a slice.
// Going on by chunks flips bits that are clear in the first fragment's chunk, and the swizzle is an exclusive or as
// well.
__device__ __forceinline__ void load_fragments(Fragments& out, uint32_t a_lane, uint32_t b_lane, int step) {
#pragma unroll
  for (int i = 0; i < kWarpRows / 16; ++i) {
    load_matrices(out.a[i], (a_lane ^ (step * 32)) + i * 16 * kDepth * 2);
  }
#pragma unroll
  for (int j = 0; j < kWarpColumns / 16; ++j) {
    load_matrices_transposed(out.b[j], (b_lane ^ (j * 32)) + step * kStep * kColumns * 2);
  }
}

}  // namespace ampere

template <typename T, bool kAligned, int kProblems, int kSides, typename Epilogue>
__global__ void __launch_bounds__(ampere::kThreads, kAligned ? 2 : 1)
    product_mma_kernel(const __grid_constant__ Pointers<T, kProblems, kSides> pointers,
                       const __grid_constant__ Epilogue epilogue, int m, int n, int k, int tiles_m, int tiles_n) {
  using namespace ampere;
  constexpr int kSpan = kColumns / kSides;  // of the result, a tile
  extern __shared__ __align__(128) unsigned char fetched[];
  unsigned char* a_slices = fetched;
  unsigned char* b_slices = fetched + kStages * kBytesA;
  const int problem = blockIdx.x / (tiles_m * tiles_n);
  const TilePlace tile = tile_place(blockIdx.x % (tiles_m * tiles_n), tiles_m, tiles_n);
  const int first_row = tile.row * kRows;
  const int first_column = tile.column * kSpan;
  const int depth = (k + kDepth - 1) / kDepth;

  constexpr int kChunksA = kDepth / kChunk;
  constexpr int kChunksB = kColumns / kChunk;
  const Share<T, kRows, kChunksA, kAligned> a_share;
  const Share<T, kDepth, kChunksB, kAligned> b_share;
  // With two sides, stripes of two chunks belong to the first and the second factor in turn.
  const int side = kSides == 1 ? 0 : b_share.chunk / 2 % 2;
  const int b_chunk = kSides == 1 ? b_share.chunk : b_share.chunk / 4 * 2 + b_share.chunk % 2;
  const int b_column = first_column + b_chunk * kChunk;
  const T* a_source = pointers.a[problem] + static_cast<int64_t>(first_row + a_share.row) * k + a_share.chunk * kChunk;
  const T* b_source = pointers.b[problem][side] + static_cast<int64_t>(b_share.row) * n + b_column;
  // Slices are fetched in order, each once.
  const auto fetch = [&](int slice) {
    if (slice < depth) {
      const int stage = slice % kStages;
      const int k_left = k - slice * kDepth;
      a_share.fetch(a_slices + stage * kBytesA, a_source, k, m - first_row, k_left - a_share.chunk * kChunk);
      b_share.fetch(b_slices + stage * kBytesB, b_source, n, k_left, n - b_column);
      a_source += kDepth;
      b_source += static_cast<int64_t>(kDepth) * n;
    }
    commit_copies();  // an empty group too, so that groups keep counting slices
  };

  // Lanes 0 to 15 name the rows of the left two 8 x 8 matrices of a fragment, lanes 16 to 31 of the right two.
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsAcross * kWarpRows;
  const int warp_column = warp % kWarpsAcross * kWarpColumns;
  const uint32_t a_lane = shared_address(a_slices) + swizzled<kChunksA>(warp_row + lane % 16, lane / 16);
  const uint32_t b_lane = shared_address(b_slices) + swizzled<kChunksB>(lane % 16, warp_column / kChunk + lane / 16);

  float sums[kWarpRows / 16][kWarpColumns / 8][4] = {};
#pragma unroll
  for (int slice = 0; slice < kStages - 1; ++slice) fetch(slice);
  for (int slice = 0; slice < depth; ++slice) {
    wait_copies<kStages - 2>();
    __syncthreads();
    fetch(slice + kStages - 1);  // over the slice before this one, which every warp left before the barrier
    const int stage = slice % kStages;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Fragments now;
      load_fragments(now, a_lane + stage * kBytesA, b_lane + stage * kBytesB, step);
#pragma unroll
      for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpColumns / 8; ++j) {
          multiply_accumulate<T>(sums[i][j], now.a[i], now.b[j / 2][j % 2 * 2], now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  // In a row of two neighbouring 8-column fragments a thread has two pairs, 8 apart: the epilogue takes them as such,
  // or one by one where a pair may reach past the end of the row.
  constexpr int kCount = kAligned ? 2 : 1;
  constexpr int kRuns = 4 / kCount;
  const int own = lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < kWarpColumns / 8 / kSides; j += 2) {
    const int column = first_column + warp_column / kSides + j * 8;
    int starts[kRuns];
    typename Epilogue::template Columns<kCount> columns[kRuns];
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      starts[run] = column + own + (kAligned ? run * 8 : run / 2 * 8 + run % 2);
      if (starts[run] < n) columns[run] = epilogue.template columns<kAligned, kCount>(problem, starts[run], n);
    }
#pragma unroll
    for (int i = 0; i < kWarpRows / 8; ++i) {
      const int row = first_row + warp_row + i * 8 + lane / 4;
      const bool inside = row < m;
      float values[kSides][kRuns][kCount];
#pragma unroll
      for (int at = 0; at < kSides * 4; ++at) {
        values[at / 4][at % 4 / kCount][at % kCount] = sums[i / 2][at / 4 * 2 + j + at % 4 / 2][i % 2 * 2 + at % 2];
      }
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        if (!inside || starts[run] >= n) continue;
        if constexpr (kSides == 1) {
          epilogue.template apply<kAligned>(columns[run], problem, row, starts[run], values[0][run]);
        } else {
          epilogue.template apply<kAligned>(columns[run], problem, row, starts[run], values[0][run], values[1][run]);
        }
      }
      T* place = pointers.c[problem] + static_cast<int64_t>(row) * n + column;
      if constexpr (kAligned) {
        store_two_tiles(place, inside ? n - column : 0, values[0][0][0], values[0][0][1], values[0][1][0],
                        values[0][1][1]);
      } else {
#pragma unroll
        for (int run = 0; run < kRuns; ++run) {
          if (inside && starts[run] < n) place[starts[run] - column] = from_float<T>(values[0][run][0]);
        }
      }
    }
  }
}

// Wants something to write; if kAligned, rows_aligned<16> and an aligned epilogue.
template <bool kAligned, typename T, int kProblems, int kSides, typename Epilogue>
void multiply_mma(const Operands<kProblems, kSides>& p, const Pointers<T, kProblems, kSides>& at,
                  const Epilogue& epilogue, const char* name) {
  const auto kernel = product_mma_kernel<T, kAligned, kProblems, kSides, Epilogue>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ampere::kSharedBytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
  const int64_t tiles_m = tiles_of(p.m, ampere::kRows);
  const int64_t tiles_n = tiles_of(p.n, ampere::kColumns / kSides);
  const int64_t tiles = tiles_m * tiles_n * kProblems;
  STD_TORCH_CHECK(tiles < (1ll << 31), name, ": too many tiles for one launch");
  kernel<<<static_cast<unsigned>(tiles), ampere::kThreads, ampere::kSharedBytes, current_stream(p.a[0])>>>(
      at, epilogue, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), static_cast<int>(tiles_m),
      static_cast<int>(tiles_n));
}

}  // namespace groundspeed
