"""The backward pass of layer_norm and rms_norm in CUDA C++ that CuPy compiles at run time, for both centred or not.

With h = (x - mean) · rstd (mean = 0 in rms_norm) and g = grad · weight, grad_x = (g - [centred] avg(g) - h · avg(g·h))
· rstd over a row, grad_weight = sum of grad · h and grad_bias = sum of grad over the rows. Blocks stay and walk over
rows of up to 8192 elements by 16-byte packs; each adds up its rows' share of the parameters' gradients in registers and
writes one row of partial sums, which a second kernel adds in a fixed order. Other rows are read twice: a block a row
for the averages, then tiles of columns.
"""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

OWN = 8  # elements a thread of a row that is held
LONGEST_HELD = 1024 * OWN
RESIDENT_THREADS = 1024  # a multiprocessor
FEWEST_TURNS = 8  # of a block: fewer rows would not be worth its row of partial sums
TILE_THREADS = 256
SUM_COLUMNS, SUM_ROWS = 32, 16

SOURCE = r"""
template <typename T, int kLanes>
__device__ inline void load_lanes(const T* place, float* values) {
  if constexpr (kLanes == 1) {
    values[0] = as_float(*place);
  } else {
    Pack<T> pack;
    *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<const uint4*>(place);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[i] = as_float(pack.lanes[i]);
  }
}

template <typename T, int kLanes>
__device__ inline void store_lanes(T* place, const float* values) {
  if constexpr (kLanes == 1) {
    put(place, values[0]);
  } else {
    Pack<T> pack;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) put(pack.lanes + i, values[i]);
    *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(&pack);
  }
}

__device__ inline float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Both sums over the block, in every thread. scratch[2][32] may be used again after the next barrier but one: two of
// them in turn need one barrier a call.
__device__ inline float2 block_sums(float2 value, float (*scratch)[32]) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  value.x = warp_sum(value.x);
  value.y = warp_sum(value.y);
  if (lane == 0) {
    scratch[0][threadIdx.x / 32] = value.x;
    scratch[1][threadIdx.x / 32] = value.y;
  }
  __syncthreads();
  value.x = warp_sum(lane < warps ? scratch[0][lane] : 0.0f);
  value.y = warp_sum(lane < warps ? scratch[1][lane] : 0.0f);
  return value;
}

template <typename T, int kLanes, bool kCentred>
__global__ void __launch_bounds__(1024)
    norm_backward_held(const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight,
                       const float* __restrict__ mean, const float* __restrict__ rstd, T* __restrict__ grad_x,
                       float* __restrict__ partials, int rows, int length) {
  constexpr int kOwn = @OWN@, kPacks = kOwn / kLanes;
  __shared__ float scratch[2][2][32];
  float weight_sums[kOwn] = {}, bias_sums[kOwn] = {};
  int turn = 0;
  for (int row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    const long long start = static_cast<long long>(row) * length;
    const float scale = rstd[row], centre = kCentred ? mean[row] : 0.0f;
    float g[kOwn] = {}, h[kOwn] = {};
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const int column = (pack * blockDim.x + threadIdx.x) * kLanes;
      if (column >= length) continue;
      load_lanes<T, kLanes>(grad + start + column, g + pack * kLanes);
      load_lanes<T, kLanes>(x + start + column, h + pack * kLanes);
    }
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const int column = (pack * blockDim.x + threadIdx.x) * kLanes;
      float w[kLanes] = {};
      if (column < length) load_lanes<T, kLanes>(weight + column, w);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const int e = pack * kLanes + i;  // outside of the row g is 0, and with it all of these
        h[e] = (h[e] - centre) * scale;
        weight_sums[e] += g[e] * h[e];
        if (kCentred) bias_sums[e] += g[e];
        g[e] *= w[i];
        sums.x += g[e] * h[e];
        sums.y += g[e];
      }
    }
    const float2 whole = block_sums(sums, scratch[turn]);
    const float slope = whole.x / length, level = kCentred ? whole.y / length : 0.0f;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const int column = (pack * blockDim.x + threadIdx.x) * kLanes;
      if (column >= length) continue;
      float result[kLanes];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const int e = pack * kLanes + i;
        result[i] = (g[e] - level - h[e] * slope) * scale;
      }
      store_lanes<T, kLanes>(grad_x + start + column, result);
    }
  }
#pragma unroll
  for (int e = 0; e < kOwn; ++e) {
    const int column = (e / kLanes * blockDim.x + threadIdx.x) * kLanes + e % kLanes;
    if (column >= length) continue;
    partials[static_cast<long long>(blockIdx.x) * length + column] = weight_sums[e];
    if (kCentred) partials[(static_cast<long long>(gridDim.x) + blockIdx.x) * length + column] = bias_sums[e];
  }
}

// averages [rows, 2]: of g·h and of g
template <typename T, int kLanes, bool kCentred>
__global__ void norm_backward_averages(const T* __restrict__ grad, const T* __restrict__ x,
                                       const T* __restrict__ weight, const float* __restrict__ mean,
                                       const float* __restrict__ rstd, float* __restrict__ averages, int length) {
  __shared__ float scratch[2][32];
  const int row = blockIdx.x;
  const long long start = static_cast<long long>(row) * length;
  const float scale = rstd[row], centre = kCentred ? mean[row] : 0.0f;
  float2 sums = make_float2(0.0f, 0.0f);
  for (int column = threadIdx.x * kLanes; column < length; column += blockDim.x * kLanes) {
    float g[kLanes], h[kLanes], w[kLanes];
    load_lanes<T, kLanes>(grad + start + column, g);
    load_lanes<T, kLanes>(x + start + column, h);
    load_lanes<T, kLanes>(weight + column, w);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      sums.x += g[i] * w[i] * ((h[i] - centre) * scale);
      sums.y += g[i] * w[i];
    }
  }
  const float2 whole = block_sums(sums, scratch);
  if (threadIdx.x == 0) {
    averages[2ll * row] = whole.x / length;
    averages[2ll * row + 1] = whole.y / length;
  }
}

template <typename T, int kLanes, bool kCentred>
__global__ void norm_backward_columns(const T* __restrict__ grad, const T* __restrict__ x,
                                      const T* __restrict__ weight, const float* __restrict__ mean,
                                      const float* __restrict__ rstd, const float* __restrict__ averages,
                                      T* __restrict__ grad_x, float* __restrict__ partials, int rows, int length) {
  const int parts = gridDim.x, part = blockIdx.x;
  const int column = (blockIdx.y * blockDim.x + threadIdx.x) * kLanes;
  if (column >= length) return;
  float w[kLanes], weight_sums[kLanes] = {}, bias_sums[kLanes] = {};
  load_lanes<T, kLanes>(weight + column, w);
#pragma unroll 4
  for (int row = part; row < rows; row += parts) {
    const long long start = static_cast<long long>(row) * length + column;
    const float scale = rstd[row], centre = kCentred ? mean[row] : 0.0f;
    const float slope = averages[2ll * row], level = kCentred ? averages[2ll * row + 1] : 0.0f;
    float g[kLanes], h[kLanes], result[kLanes];
    load_lanes<T, kLanes>(grad + start, g);
    load_lanes<T, kLanes>(x + start, h);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const float normal = (h[i] - centre) * scale;
      weight_sums[i] += g[i] * normal;
      if (kCentred) bias_sums[i] += g[i];
      result[i] = (g[i] * w[i] - level - normal * slope) * scale;
    }
    store_lanes<T, kLanes>(grad_x + start, result);
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    partials[static_cast<long long>(part) * length + column + i] = weight_sums[i];
    if (kCentred) partials[(static_cast<long long>(parts) + part) * length + column + i] = bias_sums[i];
  }
}

// sums [kinds, length] of partials [kinds, parts, length]; the kind is blockIdx.y
template <typename T>
__global__ void norm_backward_sums(const float* __restrict__ partials, int parts, int length, T* __restrict__ sums) {
  __shared__ float scratch[@SUM_ROWS@][@SUM_COLUMNS@];
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  if (column < length) {
    const float* mine = partials + static_cast<long long>(blockIdx.y) * parts * length + column;
    for (int part = threadIdx.y; part < parts; part += blockDim.y) sum += mine[static_cast<long long>(part) * length];
  }
  scratch[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= length) return;
  for (int i = 1; i < blockDim.y; ++i) sum += scratch[i][threadIdx.x];
  put(sums + static_cast<long long>(blockIdx.y) * length + column, sum);
}
"""


def kernels_for(dtype, centred):
    """The four kernels by name, those that move packs by (name, elements at a time)."""
    c_type, most = C_TYPES[dtype.name], 16 // dtype.itemsize
    flag = "true" if centred else "false"
    expressions = {"sums": f"norm_backward_sums<{c_type}>"}
    for lanes in (1, most):
        for name in ("averages", "columns"):
            expressions[name, lanes] = f"norm_backward_{name}<{c_type}, {lanes}, {flag}>"
    expressions["held", most] = f"norm_backward_held<{c_type}, {most}, {flag}>"
    code = CONVERSIONS + SOURCE
    for mark, value in (("OWN", OWN), ("SUM_ROWS", SUM_ROWS), ("SUM_COLUMNS", SUM_COLUMNS)):
        code = code.replace(f"@{mark}@", str(value))
    module = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=tuple(expressions.values()))
    return {name: module.get_function(expression) for name, expression in expressions.items()}


def runner(grad, x, weight, mean, rstd):
    """``run`` for fresh gradients of x [M, N], weight [N] and, unless mean is None, bias [N]."""
    centred = mean is not None
    kinds = 2 if centred else 1
    rows, length = x.shape
    kernels = kernels_for(x.dtype, centred)
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    most = 16 // x.dtype.itemsize
    m, n = numpy.int32(rows), numpy.int32(length)

    def by_rows(arrays, grad_x):
        threads = -(-length // (OWN * 32)) * 32
        parts = min(-(-rows // FEWEST_TURNS), processors * (RESIDENT_THREADS // threads))
        partials = cupy.empty((kinds, parts, length), dtype=cupy.float32)
        kernels["held", most]((parts,), (threads,), (*arrays, grad_x, partials, m, n))
        return partials

    def by_columns(arrays, grad_x, lanes):
        tiles = -(-length // (TILE_THREADS * lanes))
        parts = max(1, min(-(-rows // FEWEST_TURNS), -(-8 * processors // tiles)))
        averages = cupy.empty((rows, 2), dtype=cupy.float32)
        partials = cupy.empty((kinds, parts, length), dtype=cupy.float32)
        kernels["averages", lanes]((rows,), (TILE_THREADS,), (*arrays, averages, n))
        kernels["columns", lanes]((parts, tiles), (TILE_THREADS,), (*arrays, averages, grad_x, partials, m, n))
        return partials

    def run():
        matrices = (cupy.ascontiguousarray(grad), cupy.ascontiguousarray(x), weight)
        arrays = (*matrices, rstd if mean is None else mean, rstd)
        grad_x = cupy.empty((rows, length), dtype=x.dtype)
        sums = cupy.empty((kinds, length), dtype=x.dtype)
        aligned = length % most == 0 and all(array.data.ptr % 16 == 0 for array in (*matrices, grad_x))
        if rows == 0:
            partials = cupy.empty((kinds, 0, length), dtype=cupy.float32)
        elif aligned and length <= LONGEST_HELD:
            partials = by_rows(arrays, grad_x)
        else:
            partials = by_columns(arrays, grad_x, most if aligned else 1)
        grid = (-(-length // SUM_COLUMNS), kinds)
        arguments = (partials, numpy.int32(partials.shape[1]), n, sums)
        kernels["sums"](grid, (SUM_COLUMNS, SUM_ROWS), arguments)
        return (grad_x, *sums)

    return run
