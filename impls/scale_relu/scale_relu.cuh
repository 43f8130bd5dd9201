// The two operations as functions of one element, apart and together.
#pragma once

#include "../_cuda/pack_map.cuh"

namespace groundspeed {

struct Scale {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};

// A comparison with NaN is false, so NaN passes; fmaxf would drop it.
struct Relu {
  __device__ float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};

struct ScaleRelu {
  Scale scale;
  Relu relu;
  __device__ float operator()(float x) const { return relu(scale(x)); }
};

}  // namespace groundspeed
