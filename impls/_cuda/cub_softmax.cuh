// A row's maximum and sum of exponentials by cub::BlockReduce, for softmax and its logarithm.
#pragma once

#include <cub/block/block_reduce.cuh>

#include "elementwise.cuh"
#include "softmax_math.cuh"

namespace groundspeed {

constexpr int kCubThreads = 256;

struct MergePartials {
  __device__ SoftmaxPartial operator()(const SoftmaxPartial& a, const SoftmaxPartial& b) const {
    const float maximum = fmaxf(a.maximum, b.maximum);
    return {maximum, a.sum * rescale(a.maximum, maximum) + b.sum * rescale(b.maximum, maximum)};
  }
};

using PartialReduce = cub::BlockReduce<SoftmaxPartial, kCubThreads>;

// The partial of a whole row, in every thread of a block of kCubThreads.
template <typename T>
__device__ __forceinline__ SoftmaxPartial cub_row_partial(const T* __restrict__ row, int64_t length) {
  __shared__ typename PartialReduce::TempStorage scratch;
  __shared__ SoftmaxPartial whole;
  SoftmaxPartial part{-CUDART_INF_F, 0.0f};
  for (int64_t i = threadIdx.x; i < length; i += kCubThreads) {
    const float value = to_float(row[i]), maximum = fmaxf(part.maximum, value);
    part.sum = part.sum * rescale(part.maximum, maximum) + rescale(value, maximum);
    part.maximum = maximum;
  }
  const SoftmaxPartial reduced = PartialReduce(scratch).Reduce(part, MergePartials{});
  if (threadIdx.x == 0) whole = reduced;
  __syncthreads();
  return whole;
}

}  // namespace groundspeed
