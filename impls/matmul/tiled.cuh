// The classical 32 × 32 shared-memory tile, an element of C a thread; kPitch is the length of a row of A's tile.
#pragma once

#include "../_cuda/float_dispatch.cuh"
#include "../_cuda/float_pack.cuh"
#include "product.cuh"

namespace {

using namespace groundspeed;

constexpr int kTile = 32;

// A's tile is kept transposed, as register-blocked kernels want it: the inner loop then walks down both tiles in step.
// A warp reads 32 neighbours of one row of A (coalesced) and writes them into one *column* of the tile, kPitch floats
// apart: with a pitch of 32 all 32 lanes hit the same bank, with 33 each its own.
template <typename T, int kPitch>
__global__ void __launch_bounds__(kTile* kTile)
    matmul_tiled_kernel(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int64_t m, int64_t n,
                        int64_t k, unsigned tiles_n) {
  __shared__ float a_tile[kTile][kPitch];  // [k][row]
  __shared__ float b_tile[kTile][kTile];   // [k][column]
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int64_t row = static_cast<int64_t>(blockIdx.x / tiles_n) * kTile + y;
  const int64_t column = static_cast<int64_t>(blockIdx.x % tiles_n) * kTile + x;
  float sum = 0.0f;
  for (int64_t first = 0; first < k; first += kTile) {
    a_tile[x][y] = row < m && first + x < k ? to_float(a[row * k + first + x]) : 0.0f;
    b_tile[y][x] = column < n && first + y < k ? to_float(b[(first + y) * n + column]) : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[i][y] * b_tile[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = from_float<T>(sum);
}

template <int kPitch>
Tensor matmul_tiled(Tensor left, Tensor right, const char* name) {
  const Product p = product_of(left, right, name);
  if (p.c.numel() == 0) return p.c;
  const int64_t tiles_m = (p.m + kTile - 1) / kTile;
  const int64_t tiles_n = (p.n + kTile - 1) / kTile;
  dispatch_float(p.a, name, [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = matmul_tiled_kernel<T, kPitch>;
    kernel<<<static_cast<unsigned>(tiles_m * tiles_n), dim3(kTile, kTile), 0, current_stream(p.a)>>>(
        static_cast<const T*>(p.a.data_ptr()), static_cast<const T*>(p.b.data_ptr()), static_cast<T*>(p.c.data_ptr()),
        p.m, p.n, p.k, static_cast<unsigned>(tiles_n));
  });
  check_launch(name);
  return p.c;
}

}  // namespace
