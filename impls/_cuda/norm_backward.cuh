// The backward pass of layer_norm (kCentred) and rms_norm: the gradient of x row by row, those of weight and bias by
// sums over rows in two stages.
//
// With h = (x - mean)·rstd (mean = 0 in rms_norm) and g = grad·weight, over a row
//   grad_x = (g - [kCentred] avg(g) - h·avg(g·h))·rstd,
// and over the rows grad_weight = sum(grad·h), grad_bias = sum(grad). Blocks stay and walk over rows. A thread always
// has the same columns, so it adds up their share of the weight's gradient in registers; each block writes one row of
// partial sums, and a second kernel adds these in a fixed order. No atomics: the result is the same on every call.
//
// Rows of up to 8192 elements in 16-byte packs are held in registers, the next ones on their way by cp.async into
// places that only the thread which asked for them reads: grad and x cross DRAM once. Other rows are read twice: a
// block a row for both averages, then tiles of columns.
#pragma once

#include <array>

#include "elementwise.cuh"
#include "mma.cuh"
#include "row_block.cuh"

namespace groundspeed {

template <typename T>
struct NormRows {
  const T* grad;
  const T* x;
  const T* weight;
  const float* mean;  // null where not kCentred
  const float* rstd;
  T* grad_x;
  float* averages;  // [rows][kinds] of g·h and g: only where rows are not held
  float* partials;  // [kinds][parts][length]: weight, then bias
  int rows;
  int length;
};

template <bool kCentred>
constexpr int kNormKinds = kCentred ? 2 : 1;

constexpr int kHeldOwn = 8;  // elements a thread
constexpr int kLongestHeldNorm = kMostRowThreads * kHeldOwn;
constexpr int kResidentNormThreads = 1024;  // a multiprocessor, of 64 registers each
constexpr int kFewestTurns = 4;  // of a block: fewer rows would not be worth its row of partial sums

template <typename T>
constexpr int kNormStages = sizeof(T) == 4 ? 2 : 3;

template <typename T>
constexpr int kHeldBytes = kNormStages<T> * 2 * kHeldOwn * static_cast<int>(sizeof(T));  // of shared memory a thread

// blockDim.x / row_threads rows at a time.
template <typename T, bool kCentred>
__global__ void __launch_bounds__(kMostRowThreads) norm_backward_held(NormRows<T> p, int row_threads) {
  constexpr int kLanes = FloatPack<T>::kLanes, kPacks = kHeldOwn / kLanes;
  constexpr int kStages = kNormStages<T>, kKinds = kNormKinds<kCentred>;
  extern __shared__ __align__(16) unsigned char staged[];
  // Two in turn: a slow warp may still read one row's while a fast one writes the next one's.
  __shared__ float scratch[2][kKinds][kWarp];
  const int groups = blockDim.x / row_threads, group = threadIdx.x / row_threads, thread = threadIdx.x % row_threads;
  const int lane = threadIdx.x % kWarp, warps = row_threads / kWarp;
  const int step = gridDim.x * groups;

  const auto column = [&](int pack) { return (pack * row_threads + thread) * kLanes; };
  const auto slot = [&](int stage, int array, int pack) {
    return staged + (((stage * 2 + array) * kPacks + pack) * blockDim.x + threadIdx.x) * 16;
  };
  const auto fetch = [&](int row, int stage) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const bool inside = row < p.rows && column(pack) < p.length;
      const int64_t offset = inside ? static_cast<int64_t>(row) * p.length + column(pack) : 0;
      copy_async16(shared_address(slot(stage, 0, pack)), p.grad + offset, inside);
      copy_async16(shared_address(slot(stage, 1, pack)), p.x + offset, inside);
    }
    commit_copies();
  };

  float weight_sums[kHeldOwn] = {}, bias_sums[kCentred ? kHeldOwn : 1] = {};
  int row = blockIdx.x * groups + group;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(row + stage * step, stage);
  float next_rstd = row < p.rows ? p.rstd[row] : 0.0f;
  float next_mean = kCentred && row < p.rows ? p.mean[row] : 0.0f;
  int turn = 0;
  // The block's first row decides whether there is a turn: all its groups meet at the barrier.
  for (; row - group < p.rows; row += step, ++turn) {
    const float rstd = next_rstd, mean = next_mean;
    float h[kHeldOwn], g[kHeldOwn];
    wait_copies<kStages - 2>();
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const FloatPack<T> grads = load_pack(reinterpret_cast<const T*>(slot(turn % kStages, 0, pack)));
      const FloatPack<T> values = load_pack(reinterpret_cast<const T*>(slot(turn % kStages, 1, pack)));
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        g[pack * kLanes + i] = to_float(grads.lanes[i]);
        h[pack * kLanes + i] = (to_float(values.lanes[i]) - mean) * rstd;
      }
    }
    fetch(row + (kStages - 1) * step, (turn + kStages - 1) % kStages);
    if (row + step < p.rows) {
      next_rstd = p.rstd[row + step];
      if constexpr (kCentred) next_mean = p.mean[row + step];
    }
    float sums[kKinds] = {};
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      float weight[kLanes] = {};
      if (column(pack) < p.length) load_lanes(p.weight + column(pack), weight);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const int e = pack * kLanes + i;
        // Outside of the matrix grad is 0, and with it all of these.
        weight_sums[e] = fmaf(g[e], h[e], weight_sums[e]);
        if constexpr (kCentred) bias_sums[e] += g[e];
        g[e] *= weight[i];
        sums[0] = fmaf(g[e], h[e], sums[0]);
        if constexpr (kCentred) sums[1] += g[e];
      }
    }
#pragma unroll
    for (int kind = 0; kind < kKinds; ++kind) {
      const float sum = warp_sum(sums[kind]);
      if (lane == 0) scratch[turn % 2][kind][threadIdx.x / kWarp] = sum;
    }
    __syncthreads();
    float average[kKinds];
#pragma unroll
    for (int kind = 0; kind < kKinds; ++kind) {
      average[kind] = warp_sum(lane < warps ? scratch[turn % 2][kind][group * warps + lane] : 0.0f) / p.length;
    }
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      if (row >= p.rows || column(pack) >= p.length) continue;
      float result[kLanes];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const int e = pack * kLanes + i;
        const float centred = kCentred ? g[e] - average[kKinds - 1] : g[e];
        result[i] = (centred - h[e] * average[0]) * rstd;
      }
      store_lanes(p.grad_x + static_cast<int64_t>(row) * p.length + column(pack), result);
    }
  }

  // The groups' sums of each column, in the order of the groups, through the memory that rows were fetched to.
  wait_copies<0>();
  float* merged = reinterpret_cast<float*>(staged);
  const int width = row_threads * kHeldOwn;
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kHeldOwn; ++e) {
      const float own = kind == 0 ? weight_sums[e] : bias_sums[kCentred ? e : 0];
      merged[group * width + column(e / kLanes) + e % kLanes] = own;
    }
    __syncthreads();
    float* part = p.partials + (static_cast<int64_t>(kind) * gridDim.x + blockIdx.x) * p.length;
    for (int c = threadIdx.x; c < p.length; c += blockDim.x) {
      float sum = 0.0f;
      for (int from = 0; from < groups; ++from) sum += merged[from * width + c];
      part[c] = sum;
    }
  }
}

// A block a row: the averages of g·h and, where kCentred, of g.
template <typename T, bool kVector, bool kCentred>
__global__ void __launch_bounds__(256) norm_backward_averages(NormRows<T> p) {
  constexpr int kLanes = kSliceLanes<T, kVector>, kKinds = kNormKinds<kCentred>;
  __shared__ float scratch[kKinds][kWarp];
  const int64_t row = blockIdx.x;
  const T *grad = p.grad + row * p.length, *x = p.x + row * p.length;
  const float rstd = p.rstd[row], mean = kCentred ? p.mean[row] : 0.0f;
  float sums[kKinds] = {};
#pragma unroll 4
  for (int column = threadIdx.x * kLanes; column < p.length; column += blockDim.x * kLanes) {
    float g[kLanes], h[kLanes], weight[kLanes];
    load_lanes(grad + column, g);
    load_lanes(x + column, h);
    load_lanes(p.weight + column, weight);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      g[i] *= weight[i];
      sums[0] = fmaf(g[i], (h[i] - mean) * rstd, sums[0]);
      if constexpr (kCentred) sums[1] += g[i];
    }
  }
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    const float sum = block_sum(sums[kind], scratch[kind]);
    if (threadIdx.x == 0) p.averages[row * kKinds + kind] = sum / p.length;
  }
}

// A tile of columns a block, over every parts-th row: grad_x, and this part's sums for weight and bias.
template <typename T, bool kVector, bool kCentred>
__global__ void __launch_bounds__(256) norm_backward_columns(NormRows<T> p, int parts) {
  constexpr int kLanes = kSliceLanes<T, kVector>, kKinds = kNormKinds<kCentred>;
  constexpr int kTogether = 4;  // rows whose loads are under way at a time
  const int part = blockIdx.x % parts;
  const int column = (blockIdx.x / parts * blockDim.x + threadIdx.x) * kLanes;
  if (column >= p.length) return;
  float weight[kLanes], totals[kKinds][kLanes] = {};
  load_lanes(p.weight + column, weight);
#pragma unroll 1
  for (int from = part; from < p.rows; from += kTogether * parts) {
    float g[kTogether][kLanes], h[kTogether][kLanes];
    float mean[kTogether], rstd[kTogether], slope[kTogether], level[kTogether];
#pragma unroll
    for (int r = 0; r < kTogether; ++r) {
      const int64_t row = from + r * parts;
      if (row >= p.rows) break;
      load_lanes(p.grad + row * p.length + column, g[r]);
      load_lanes(p.x + row * p.length + column, h[r]);
      rstd[r] = p.rstd[row];
      mean[r] = kCentred ? p.mean[row] : 0.0f;
      slope[r] = p.averages[row * kKinds];
      level[r] = kCentred ? p.averages[row * kKinds + kKinds - 1] : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < kTogether; ++r) {
      const int64_t row = from + r * parts;
      if (row >= p.rows) break;
      float result[kLanes];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float normal = (h[r][i] - mean[r]) * rstd[r];
        totals[0][i] = fmaf(g[r][i], normal, totals[0][i]);
        if constexpr (kCentred) totals[1][i] += g[r][i];
        result[i] = (g[r][i] * weight[i] - level[r] - normal * slope[r]) * rstd[r];
      }
      store_lanes(p.grad_x + row * p.length + column, result);
    }
  }
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      p.partials[(static_cast<int64_t>(kind) * parts + part) * p.length + column + i] = totals[kind][i];
    }
  }
}

constexpr int kSumColumns = 32, kSumRows = 16;

// The second stage: adds the parts of a column, of the kind blockIdx.y. 16 threads a column, then their 16 sums.
template <typename T>
__global__ void __launch_bounds__(kSumColumns* kSumRows)
    norm_backward_sums(const float* __restrict__ partials, int parts, int length, T* grad_weight, T* grad_bias) {
  __shared__ float scratch[kSumRows][kSumColumns];
  const int column = blockIdx.x * kSumColumns + threadIdx.x;
  const float* mine = partials + static_cast<int64_t>(blockIdx.y) * parts * length + column;
  float sum = 0.0f;
  if (column < length) {
#pragma unroll 4
    for (int part = threadIdx.y; part < parts; part += kSumRows) sum += mine[static_cast<int64_t>(part) * length];
  }
  scratch[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= length) return;
#pragma unroll
  for (int i = 1; i < kSumRows; ++i) sum += scratch[i][threadIdx.x];
  (blockIdx.y == 0 ? grad_weight : grad_bias)[column] = from_float<T>(sum);
}

struct NormGradients {
  Tensor x;
  Tensor weight;
  Tensor bias;  // undefined where not kCentred
};

// Room for `count` floats.
inline Tensor float_workspace(const Tensor& like, int64_t count) {
  const int64_t room = std::max<int64_t>(count, 1);
  return torch::stable::new_empty(like, {&room, 1}, ScalarType::Float);
}

template <typename T, bool kCentred>
void launch_norm_backward(NormRows<T> p, NormGradients& out, const Tensor& like, const char* name) {
  constexpr int kKinds = kNormKinds<kCentred>;
  const cudaStream_t stream = current_stream(like);
  const int64_t processors = device_attribute(like, cudaDevAttrMultiProcessorCount);
  const bool packs = rows_are_packs<T>(p.length, p.grad, p.x, p.weight, p.grad_x);
  int64_t parts = 0;
  Tensor partials, averages;
  if (p.rows > 0 && packs && p.length <= kLongestHeldNorm) {
    const int row_threads = static_cast<int>(ceil_div(p.length, kHeldOwn * kWarp)) * kWarp;
    const int groups = std::max(1, kResidentNormThreads / 2 / row_threads);
    const int threads = groups * row_threads;
    parts = std::min(ceil_div(p.rows, groups * kFewestTurns), processors * (kResidentNormThreads / threads));
    partials = float_workspace(like, kKinds * parts * p.length);
    p.partials = output_pointer<float>(partials);
    const auto kernel = norm_backward_held<T, kCentred>;
    const int shared = threads * kHeldBytes<T>;
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
    kernel<<<static_cast<unsigned>(parts), threads, shared, stream>>>(p, row_threads);
  } else if (p.rows > 0) {
    constexpr int kThreads = 256;
    const int64_t tiles = ceil_div(p.length, kThreads * (packs ? FloatPack<T>::kLanes : 1));
    parts = std::max<int64_t>(1, std::min(ceil_div(p.rows, kFewestTurns), ceil_div(8 * processors, tiles)));
    partials = float_workspace(like, kKinds * parts * p.length);
    averages = float_workspace(like, kKinds * static_cast<int64_t>(p.rows));
    p.partials = output_pointer<float>(partials);
    p.averages = output_pointer<float>(averages);
    const unsigned rows = covering_grid(p.rows, 1), grid = covering_grid(tiles * parts, 1);
    const auto launch = [&](auto by_packs) {
      norm_backward_averages<T, by_packs(), kCentred><<<rows, kThreads, 0, stream>>>(p);
      norm_backward_columns<T, by_packs(), kCentred><<<grid, kThreads, 0, stream>>>(p, static_cast<int>(parts));
    };
    packs ? launch(std::true_type{}) : launch(std::false_type{});
  }
  const dim3 grid(covering_grid(p.length, kSumColumns), kKinds);
  norm_backward_sums<T><<<grid, dim3(kSumColumns, kSumRows), 0, stream>>>(
      p.partials, static_cast<int>(parts), p.length, output_pointer<T>(out.weight),
      kCentred ? output_pointer<T>(out.bias) : nullptr);
}

// grad and x [M, N] and weight [N] of one dtype; rstd, and where kCentred mean, M values of float32.
template <bool kCentred>
NormGradients norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor* mean,
                            const Tensor& rstd, const char* name) {
  STD_TORCH_CHECK(x.dim() == 2 && grad.dim() == 2 && grad.size(0) == x.size(0) && grad.size(1) == x.size(1) &&
                      weight.numel() == x.size(1) && x.size(0) < (1ll << 30) &&
                      x.size(1) < (1ll << 30),
                  name, ": expected grad_output and x [M, N] and weight [N], M and N below 2^30");
  STD_TORCH_CHECK(grad.scalar_type() == x.scalar_type() && weight.scalar_type() == x.scalar_type(), name,
                  ": grad_output, x and weight must have one dtype");
  for (const Tensor* saved : {kCentred ? mean : &rstd, &rstd}) {
    STD_TORCH_CHECK(saved->numel() == x.size(0) && saved->scalar_type() == ScalarType::Float, name,
                    ": expected the statistics as M values of float32");
  }
  const Tensor grads = torch::stable::contiguous(grad), values = torch::stable::contiguous(x);
  const Tensor scale = torch::stable::contiguous(weight), deviations = torch::stable::contiguous(rstd);
  const Tensor means = torch::stable::contiguous(kCentred ? *mean : rstd);
  NormGradients out = {torch::stable::empty_like(values), torch::stable::empty_like(scale), {}};
  if constexpr (kCentred) out.bias = torch::stable::empty_like(scale);
  if (x.size(1) == 0) return out;
  dispatch_float(values, name, [&](auto zero) {
    using T = decltype(zero);
    const NormRows<T> rows = {input_pointer<T>(grads),
                              input_pointer<T>(values),
                              input_pointer<T>(scale),
                              kCentred ? input_pointer<float>(means) : nullptr,
                              input_pointer<float>(deviations),
                              output_pointer<T>(out.x),
                              nullptr,
                              nullptr,
                              static_cast<int>(x.size(0)),
                              static_cast<int>(x.size(1))};
    launch_norm_backward<T, kCentred>(rows, out, values, name);
  });
  check_launch(name);
  return out;
}

}  // namespace groundspeed
