// One softmax over a row that a cluster of blocks holds.
#pragma once

#include "row_cluster.cuh"
#include "row_slice.cuh"
#include "softmax_math.cuh"

namespace groundspeed {

// Merges one partial a block over the cluster: one barrier of the cluster. Every thread of a block gives the same.
__device__ __forceinline__ SoftmaxPartial cluster_merge(SoftmaxPartial block_part, float2 (&parts)[kMostClusterBlocks]) {
  share(block_part.maximum, block_part.sum, parts);
  float maximum = -CUDART_INF_F;
  for (int rank = 0; rank < static_cast<int>(cluster_blocks()); ++rank) maximum = fmaxf(maximum, parts[rank].x);
  float sum = 0.0f;
  for (int rank = 0; rank < static_cast<int>(cluster_blocks()); ++rank) {
    sum += parts[rank].y * rescale(parts[rank].x, maximum);
  }
  return {maximum, sum};
}

// Turns this thread's slice of a row into its softmax. Begins with cluster_wait(), for the cluster_arrive() before the
// slice was loaded.
template <int kElements>
__device__ __forceinline__ void softmax_in_cluster(float (&values)[kElements]) {
  __shared__ SoftmaxPartial scratch[kWarp];
  __shared__ float2 parts[kMostClusterBlocks];
  const SoftmaxPartial warp_part = warp_exponentials(values);
  const SoftmaxPartial block_part = block_merge(warp_part, scratch);
  cluster_wait();
  const SoftmaxPartial whole = cluster_merge(block_part, parts);
  const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
#pragma unroll
  for (int i = 0; i < kElements; ++i) values[i] *= scale;
}

}  // namespace groundspeed
