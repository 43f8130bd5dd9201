"""CUDA C++ of cupy_split: chunks of positions on tensor cores and on CUDA cores, and their merge."""

SOURCE = r"""
constexpr int kWarps = 4;
constexpr unsigned kAll = 0xffffffffu;
#define NEGATIVE_INFINITY __int_as_float(0xff800000)  // the run-time compiler has no INFINITY

__device__ inline void multiply(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Lane (g, t) of an 8 x 8 matrix holds (row g, columns 2t, 2t + 1); afterwards (column g, rows 2t, 2t + 1).
__device__ inline unsigned transposed_pair(float first, float second) {
  const __half2 rounded = __floats2half2_rn(first, second);
  unsigned pair = *reinterpret_cast<const unsigned*>(&rounded), result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

__device__ inline unsigned word(const uint4& pack, int i) {
  return i == 0 ? pack.x : i == 1 ? pack.y : i == 2 ? pack.z : pack.w;
}

// The warps' parts in shared memory, merged into part `split` of `queries` rows: sums of 2^(score - maximum) * value,
// that maximum and the sum of the weights.
template <int kQueries, int kSize>
__device__ inline void store_parts(const float (*sums)[kQueries][kSize + 4], const float2 (*stats)[kQueries],
                                   float* __restrict__ out_sums, float2* __restrict__ out_stats, long long first_row,
                                   int queries, int splits, int size) {
  __syncthreads();
  for (int i = threadIdx.x; i < kQueries * kSize; i += kWarps * 32) {
    const int query = i / kSize, d = i % kSize;
    if (query >= queries || d >= size) continue;
    float maximum = NEGATIVE_INFINITY, sum = 0.0f, total = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) maximum = fmaxf(maximum, stats[warp][query].x);
    for (int warp = 0; warp < kWarps; ++warp) {
      const float factor = exp2f(stats[warp][query].x - maximum);
      sum += sums[warp][query][d] * factor;
      total += stats[warp][query].y * factor;
    }
    const long long part = (first_row + query) * splits + blockIdx.y;
    out_sums[part * size + d] = sum;
    if (d == 0) out_stats[part] = make_float2(maximum, total);
  }
}

template <int kSize>
__global__ void __launch_bounds__(kWarps * 32)
    decode_tensor(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                  const int* __restrict__ lengths, float* __restrict__ out_sums, float2* __restrict__ out_stats,
                  long long k_batch, long long k_head, long long k_row, long long v_batch, long long v_head,
                  long long v_row, int kv_heads, int group, int chunk, int splits, int size, float scale) {
  __shared__ float block_sums[kWarps][8][kSize + 4];
  __shared__ float2 block_stats[kWarps][8];
  constexpr int kKeyVectors = kSize / 32, kValueVectors = kSize / 64, kStride = kWarps * 16;
  const int length = lengths[blockIdx.x / kv_heads], first = blockIdx.y * chunk;
  if (first >= length) return;
  const int last = min(first + chunk, length), first_query = blockIdx.z * 8, queries = min(group - first_query, 8);
  const long long first_row = static_cast<long long>(blockIdx.x) * group + first_query;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  k += blockIdx.x / kv_heads * k_batch + blockIdx.x % kv_heads * k_head + t * 8;
  v += blockIdx.x / kv_heads * v_batch + blockIdx.x % kv_heads * v_head + g * 8;
  uint4 query[kKeyVectors], keys[2][kKeyVectors], values[4][kValueVectors];
#pragma unroll
  for (int i = 0; i < kKeyVectors; ++i) {
    query[i] = make_uint4(0, 0, 0, 0);
    if (g < queries) query[i] = *reinterpret_cast<const uint4*>(q + (first_row + g) * kSize + t * 8 + i * 32);
  }
  // Rows beyond the chunk are its last row once more, with a weight of zero.
  const auto load_keys = [&](int start) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long row = min(start + g + half * 8, last - 1);
#pragma unroll
      for (int i = 0; i < kKeyVectors; ++i) {
        keys[half][i] = *reinterpret_cast<const uint4*>(k + row * k_row + i * 32);
      }
    }
  };
  const auto load_values = [&](int start) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long row = min(start + j / 2 * 8 + t * 2 + j % 2, last - 1);
#pragma unroll
      for (int i = 0; i < kValueVectors; ++i) {
        values[j][i] = *reinterpret_cast<const uint4*>(v + row * v_row + i * 64);
      }
    }
  };
  float sums[kSize / 16][4] = {}, total[2] = {}, maximum[2] = {NEGATIVE_INFINITY, NEGATIVE_INFINITY};
  int start = first + warp * 16;
  if (start < last) {
    load_keys(start);
    load_values(start);
  }
  for (; start < last; start += kStride) {
    float scores[4] = {}, shrink[2];
#pragma unroll
    for (int i = 0; i < kKeyVectors; ++i) {
      multiply(scores, keys[0][i].x, keys[1][i].x, keys[0][i].y, keys[1][i].y, query[i].x, query[i].y);
      multiply(scores, keys[0][i].z, keys[1][i].z, keys[0][i].w, keys[1][i].w, query[i].z, query[i].w);
    }
    if (start + kStride < last) load_keys(start + kStride);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      scores[c] = start + g < last ? scores[c] * scale : NEGATIVE_INFINITY;
      scores[2 + c] = start + g + 8 < last ? scores[2 + c] * scale : NEGATIVE_INFINITY;
      float top = fmaxf(maximum[c], fmaxf(scores[c], scores[2 + c]));
      for (int offset = 4; offset < 32; offset *= 2) top = fmaxf(top, __shfl_xor_sync(kAll, top, offset));
      shrink[c] = exp2f(maximum[c] - top);
      maximum[c] = top;
      scores[c] = exp2f(scores[c] - top);
      scores[2 + c] = exp2f(scores[2 + c] - top);
      total[c] = total[c] * shrink[c] + scores[c] + scores[2 + c];
    }
    const unsigned low = transposed_pair(scores[0], scores[1]), high = transposed_pair(scores[2], scores[3]);
#pragma unroll
    for (int i = 0; i < kSize / 16; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][e] *= shrink[e % 2];
      const unsigned a = word(values[0][i / 4], i % 4), b = word(values[1][i / 4], i % 4);
      const unsigned c = word(values[2][i / 4], i % 4), d = word(values[3][i / 4], i % 4);
      multiply(sums[i], __byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x5410),
               __byte_perm(c, d, 0x7632), low, high);
    }
    if (start + kStride < last) load_values(start + kStride);
  }
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    for (int offset = 4; offset < 32; offset *= 2) total[c] += __shfl_xor_sync(kAll, total[c], offset);
    if (g == 0) block_stats[warp][t * 2 + c] = make_float2(maximum[c], total[c]);
#pragma unroll
    for (int i = 0; i < kSize / 16; ++i) {
      float* place = &block_sums[warp][t * 2 + c][i / 4 * 64 + g * 8 + i % 4 * 2];
      place[0] = sums[i][c];
      place[1] = sums[i][2 + c];
    }
  }
  store_parts<8, kSize>(block_sums, block_stats, out_sums, out_stats, first_row, queries, splits, kSize);
}

// Two queries a block; lanes share out the elements of a head, 256 at most, and a warp takes two positions at a time.
template <typename T>
__global__ void __launch_bounds__(kWarps * 32)
    decode_plain(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                 const int* __restrict__ lengths, float* __restrict__ out_sums, float2* __restrict__ out_stats,
                 long long k_batch, long long k_head, long long k_row, long long v_batch, long long v_head,
                 long long v_row, int kv_heads, int group, int chunk, int splits, int size, float scale) {
  constexpr int kSize = 256, kEach = kSize / 32, kKeys = 2;
  __shared__ float block_sums[kWarps][2][kSize + 4];
  __shared__ float2 block_stats[kWarps][2];
  const int length = lengths[blockIdx.x / kv_heads], first = blockIdx.y * chunk;
  if (first >= length) return;
  const int last = min(first + chunk, length), first_query = blockIdx.z * 2, queries = min(group - first_query, 2);
  const long long first_row = static_cast<long long>(blockIdx.x) * group + first_query;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  k += blockIdx.x / kv_heads * k_batch + blockIdx.x % kv_heads * k_head;
  v += blockIdx.x / kv_heads * v_batch + blockIdx.x % kv_heads * v_head;
  float query[2][kEach], sums[2][kEach] = {}, total[2] = {}, maximum[2] = {NEGATIVE_INFINITY, NEGATIVE_INFINITY};
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int d = lane + i * 32;
      query[c][i] = c < queries && d < size ? as_float(q[(first_row + c) * size + d]) * scale : 0.0f;
    }
  }
  for (int start = first + warp * kKeys; start < last; start += kWarps * kKeys) {
    float keys[kKeys][kEach], values[kKeys][kEach];
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      const long long row = min(start + j, last - 1);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int d = lane + i * 32;
        keys[j][i] = d < size ? as_float(k[row * k_row + d]) : 0.0f;
        values[j][i] = d < size ? as_float(v[row * v_row + d]) : 0.0f;
      }
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float scores[kKeys], top = maximum[c];
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        scores[j] = 0.0f;
#pragma unroll
        for (int i = 0; i < kEach; ++i) scores[j] += query[c][i] * keys[j][i];
        for (int offset = 16; offset > 0; offset /= 2) scores[j] += __shfl_xor_sync(kAll, scores[j], offset);
        if (start + j >= last) scores[j] = NEGATIVE_INFINITY;
        top = fmaxf(top, scores[j]);
      }
      const float shrink = exp2f(maximum[c] - top);
      maximum[c] = top;
      total[c] *= shrink;
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[c][i] *= shrink;
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        const float weight = exp2f(scores[j] - top);
        total[c] += weight;
#pragma unroll
        for (int i = 0; i < kEach; ++i) sums[c][i] += weight * values[j][i];
      }
    }
  }
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    if (lane == 0) block_stats[warp][c] = make_float2(maximum[c], total[c]);
#pragma unroll
    for (int i = 0; i < kEach; ++i) block_sums[warp][c][lane + i * 32] = sums[c][i];
  }
  store_parts<2, kSize>(block_sums, block_stats, out_sums, out_stats, first_row, queries, splits, size);
}

// A block a row: eight warps take the chunks in turn, lanes the elements of the head, 256 at most.
template <typename T>
__global__ void __launch_bounds__(256)
    decode_merge(const float* __restrict__ sums, const float2* __restrict__ stats, const int* __restrict__ lengths,
                 T* __restrict__ out, int heads, int chunk, int splits, int size) {
  __shared__ float warp_maxima[8], warp_totals[8], warp_sums[8][256];
  constexpr int kEach = 8;
  const long long row = blockIdx.x;
  const int count = (lengths[row / heads] + chunk - 1) / chunk, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  stats += row * splits;
  float maximum = NEGATIVE_INFINITY, total = 0.0f, mine[kEach] = {};
  for (int split = threadIdx.x; split < count; split += 256) maximum = fmaxf(maximum, stats[split].x);
  for (int offset = 16; offset > 0; offset /= 2) maximum = fmaxf(maximum, __shfl_xor_sync(kAll, maximum, offset));
  if (lane == 0) warp_maxima[warp] = maximum;
  __syncthreads();
  for (int other = 0; other < 8; ++other) maximum = fmaxf(maximum, warp_maxima[other]);
#pragma unroll 4
  for (int split = warp; split < count; split += 8) {
    const float2 part = stats[split];
    const float factor = exp2f(part.x - maximum);
    total += part.y * factor;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 < size) mine[i] += sums[(row * splits + split) * size + lane + i * 32] * factor;
    }
  }
  if (lane == 0) warp_totals[warp] = total;
#pragma unroll
  for (int i = 0; i < kEach; ++i) warp_sums[warp][lane + i * 32] = mine[i];
  __syncthreads();
  for (int d = threadIdx.x; d < size; d += 256) {
    float sum = 0.0f, weights = 0.0f;
    for (int other = 0; other < 8; ++other) {
      sum += warp_sums[other][d];
      weights += warp_totals[other];
    }
    put(out + row * size + d, sum / weights);
  }
}

// A warp a row of up to 32 chunks: lanes hold the chunks' statistics, then the elements of the head. Nothing crosses
// warps, and no barrier keeps one row waiting for another.
template <typename T>
__global__ void __launch_bounds__(256)
    decode_merge_few(const float* __restrict__ sums, const float2* __restrict__ stats, const int* __restrict__ lengths,
                     T* __restrict__ out, int heads, int chunk, int splits, int size, long long rows) {
  constexpr int kEach = 8;
  const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const int count = (lengths[row / heads] + chunk - 1) / chunk, lane = threadIdx.x % 32;
  const float2 own = lane < count ? stats[row * splits + lane] : make_float2(NEGATIVE_INFINITY, 0.0f);
  float maximum = own.x;
  for (int offset = 16; offset > 0; offset /= 2) maximum = fmaxf(maximum, __shfl_xor_sync(kAll, maximum, offset));
  const float factor = lane < count ? exp2f(own.x - maximum) : 0.0f;
  float total = own.y * factor, mine[kEach] = {};
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(kAll, total, offset);
#pragma unroll 4
  for (int split = 0; split < count; ++split) {
    const float weight = __shfl_sync(kAll, factor, split);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 < size) mine[i] += sums[(row * splits + split) * size + lane + i * 32] * weight;
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (lane + i * 32 < size) put(out + row * size + lane + i * 32, mine[i] / total);
  }
}
"""
