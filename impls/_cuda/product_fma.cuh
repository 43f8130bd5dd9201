// Products in float32 on the CUDA cores, the structure of matmul/cuda_register: 8 × 8 (or 4 × 4) sums a thread,
// slices of A (transposed) and B double-buffered in shared memory, the next slice on its way through registers.
//
// With two sides a tile of 128 columns has 64 of either right factor: of a thread's two groups of four columns, 64
// apart, the first belongs to the first factor and the second to the same columns of the second.
#pragma once

#include "../matmul/tile_order.cuh"
#include "product_operands.cuh"

namespace groundspeed {

namespace fma {

constexpr int kThreads = 256;
constexpr int kSide = 16;  // threads along each side of a tile
constexpr int kQuad = 4;   // elements moved at a time

// Four neighbours of a row, of which `left` lie inside; the others are 0.
template <bool kAligned>
__device__ __forceinline__ float4 load_quad(const float* place, int left) {
  if constexpr (kAligned) {
    return left > 0 ? *reinterpret_cast<const float4*>(place) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  } else {
    return make_float4(left > 0 ? place[0] : 0.0f, left > 1 ? place[1] : 0.0f, left > 2 ? place[2] : 0.0f,
                       left > 3 ? place[3] : 0.0f);
  }
}

// The same value, of whose origin the compiler knows nothing: what is computed from it is not kept in registers from an
// earlier computation.
__device__ __forceinline__ int recomputed(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Which tile of which product a block has.
template <int kTile, int kSpan>
struct Corner {
  int problem;
  int first_row;
  int first_column;
  __device__ __forceinline__ Corner(int block, int tiles_m, int tiles_n) : problem(block / (tiles_m * tiles_n)) {
    const TilePlace place = tile_place(block % (tiles_m * tiles_n), tiles_m, tiles_n);
    first_row = place.row * kTile;
    first_column = place.column * kSpan;
  }
};

}  // namespace fma

// kTile is the side of a tile of sums, 128 or (one side only) 64.
template <int kTile, bool kAligned, int kProblems, int kSides, typename Epilogue>
__global__ void __launch_bounds__(fma::kThreads, kAligned ? 2 : 1)
    product_fma_kernel(const __grid_constant__ Pointers<float, kProblems, kSides> pointers,
                       const __grid_constant__ Epilogue epilogue, int m, int n, int k, int tiles_m, int tiles_n) {
  using namespace fma;
  constexpr int kDepth = kThreads * kQuad / kTile;  // of a slice: one quad of A and one of B a thread
  constexpr int kOwn = kTile / kSide;               // rows, and columns, of sums a thread
  constexpr int kGroups = kOwn / kQuad;             // of four neighbours, kSide * kQuad apart
  constexpr int kPitch = kTile + kQuad;             // shifts the columns that transposing writes to other banks
  constexpr int kSpan = kTile / kSides;             // columns of the result, a tile
  static_assert(kSides == 1 || kGroups == 2);
  __shared__ __align__(16) float a_slice[2][kDepth][kPitch];  // [k][row]
  __shared__ __align__(16) float b_slice[2][kDepth][kTile];   // [k][column]

  const Corner<kTile, kSpan> corner(blockIdx.x, tiles_m, tiles_n);
  const int thread = threadIdx.x;
  const int a_row = thread / (kDepth / kQuad);
  const int a_k = thread % (kDepth / kQuad) * kQuad;
  const int b_k = thread / (kTile / kQuad);
  const int b_own = thread % (kTile / kQuad) * kQuad;  // column of the tile
  const int b_column = corner.first_column + b_own % kSpan;
  const int own_row = thread / kSide * kQuad;
  const int own_column = thread % kSide * kQuad;

  // Where this thread's next quads lie, and how many elements from there on belong to the matrices: along K (a_left,
  // b_left) both shrink by kDepth a slice; a row of A or a column of B outside has none.
  const float* a_place = pointers.a[corner.problem] + static_cast<int64_t>(corner.first_row + a_row) * k + a_k;
  const float* b_place = pointers.b[corner.problem][b_own / kSpan] + static_cast<int64_t>(b_k) * n + b_column;
  int a_left = corner.first_row + a_row < m ? k - a_k : 0;
  int b_left = b_column < n ? k - b_k : 0;
  const auto load_a = [&] {
    const float4 quad = load_quad<kAligned>(a_place, a_left);
    a_place += kDepth;
    a_left -= kDepth;
    return quad;
  };
  const auto load_b = [&] {
    const float4 quad = load_quad<kAligned>(b_place, kAligned || b_left <= 0 ? b_left : n - b_column);
    b_place += static_cast<int64_t>(kDepth) * n;
    b_left -= kDepth;
    return quad;
  };
  const auto keep = [&](int buffer, const float4& a_quad, const float4& b_quad) {
    a_slice[buffer][a_k][a_row] = a_quad.x;
    a_slice[buffer][a_k + 1][a_row] = a_quad.y;
    a_slice[buffer][a_k + 2][a_row] = a_quad.z;
    a_slice[buffer][a_k + 3][a_row] = a_quad.w;
    *reinterpret_cast<float4*>(&b_slice[buffer][b_k][b_own]) = b_quad;
  };

  float sums[kOwn][kOwn] = {};
  const int slices = (k + kDepth - 1) / kDepth;
  const float4 a_start = load_a();
  keep(0, a_start, load_b());
  __syncthreads();
  for (int slice = 0; slice < slices; ++slice) {
    const int buffer = slice % 2;
    const bool more = slice + 1 < slices;
    float4 a_next;
    float4 b_next;
    if (more) {
      a_next = load_a();
      b_next = load_b();
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a_own[kOwn];
      float b_own_columns[kOwn];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int skip = group * kSide * kQuad;
        *reinterpret_cast<float4*>(a_own + group * kQuad) =
            *reinterpret_cast<const float4*>(&a_slice[buffer][i][own_row + skip]);
        *reinterpret_cast<float4*>(b_own_columns + group * kQuad) =
            *reinterpret_cast<const float4*>(&b_slice[buffer][i][own_column + skip]);
      }
#pragma unroll
      for (int row = 0; row < kOwn; ++row) {
#pragma unroll
        for (int column = 0; column < kOwn; ++column) sums[row][column] += a_own[row] * b_own_columns[column];
      }
    }
    // The other buffer was last read before the barrier that ended the previous turn.
    if (more) keep(1 - buffer, a_next, b_next);
    __syncthreads();
  }

  const Corner<kTile, kSpan> result(recomputed(blockIdx.x), tiles_m, tiles_n);
  const int result_row = result.first_row + recomputed(threadIdx.x) / kSide * kQuad;
  const int result_column = result.first_column + recomputed(threadIdx.x) % kSide * kQuad;
  // The epilogue takes four neighbours, or one by one where they may reach past the end of the row.
  constexpr int kCount = kAligned ? kQuad : 1;
  constexpr int kRuns = kQuad / kCount;
#pragma unroll
  for (int group = 0; group < kGroups / kSides; ++group) {
    const int column = result_column + group * kSide * kQuad;
    typename Epilogue::template Columns<kCount> columns[kRuns];
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      if (column + run < n) columns[run] = epilogue.template columns<kAligned, kCount>(result.problem, column + run, n);
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int row = result_row + i / kQuad * kSide * kQuad + i % kQuad;
      if (row >= m) break;
      float* place = pointers.c[result.problem] + static_cast<int64_t>(row) * n + column;
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        if (column + run >= n) continue;
        float values[kSides][kCount];
#pragma unroll
        for (int at = 0; at < kSides * kCount; ++at) {
          values[at / kCount][at % kCount] = sums[i][(group + at / kCount) * kQuad + run + at % kCount];
        }
        if constexpr (kSides == 1) {
          epilogue.template apply<kAligned>(columns[run], result.problem, row, column + run, values[0]);
        } else {
          epilogue.template apply<kAligned>(columns[run], result.problem, row, column + run, values[0], values[1]);
        }
        if constexpr (kAligned) {
          *reinterpret_cast<float4*>(place) = make_float4(values[0][0], values[0][1], values[0][2], values[0][3]);
        } else {
          place[run] = values[0][0];
        }
      }
    }
  }
}

namespace fma {

template <int kTile, bool kAligned, int kProblems, int kSides, typename Epilogue>
void launch(const Operands<kProblems, kSides>& p, const Pointers<float, kProblems, kSides>& at,
            const Epilogue& epilogue, const char* name) {
  const int64_t tiles_m = tiles_of(p.m, kTile);
  const int64_t tiles_n = tiles_of(p.n, kTile / kSides);
  const int64_t tiles = tiles_m * tiles_n * kProblems;
  STD_TORCH_CHECK(tiles < (1ll << 31), name, ": too many tiles for one launch");
  product_fma_kernel<kTile, kAligned, kProblems, kSides, Epilogue>
      <<<static_cast<unsigned>(tiles), kThreads, 0, current_stream(p.a[0])>>>(
          at, epilogue, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), static_cast<int>(tiles_m),
          static_cast<int>(tiles_n));
}

}  // namespace fma

// Wants something to write; if `aligned`, rows_aligned<16> and an aligned epilogue.
template <int kProblems, int kSides, typename Epilogue>
void multiply_fma(const Operands<kProblems, kSides>& p, const Pointers<float, kProblems, kSides>& at,
                  const Epilogue& epilogue, bool aligned, const char* name) {
  const bool large = tiles_of(p.m, 128) * tiles_of(p.n, 128 / kSides) * kProblems >= multiprocessors();
  if constexpr (kSides == 1) {
    if (!aligned) return fma::launch<64, false>(p, at, epilogue, name);
    if (!large) return fma::launch<64, true>(p, at, epilogue, name);
  } else {
    if (!aligned) return fma::launch<128, false>(p, at, epilogue, name);
  }
  fma::launch<128, true>(p, at, epilogue, name);
}

}  // namespace groundspeed
