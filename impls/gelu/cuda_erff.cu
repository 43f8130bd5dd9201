// CUDA's own erff in a vectorised pass.
//
// Bound by memory in float32: N elements read, N written, two 16-byte vectors a thread. In 16 bits an element has half
// the time, and erff, accurate to 2 ulp, may not fit into it. Prediction: level with cuda_rational in float32, behind
// it in 16 bits.
#include "../_cuda/pack_map.cuh"

namespace {

using groundspeed::Tensor;

struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
};

Tensor run(Tensor x) { return groundspeed::map("gelu/cuda_erff", Gelu{}, x); }

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
