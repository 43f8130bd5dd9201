// A rational approximation in the place of erfcf: fewer instructions an element.
//
// Bound by memory: N elements read, N written, two 16-byte vectors a thread. The relative error is 1e-6 near the middle
// and 5e-6 at x = -9. Prediction: the copy ceiling in every dtype.
//
// Reached on nvidia-h200 at 968ac8c4: 126 µs for float16 N=134217728, 4.25 TB/s, 99 % of the memory ceiling, 1.37 times
// as fast as torch_eager.
#include "../_cuda/activation.cuh"
#include "../_cuda/pack_map.cuh"

namespace {

using groundspeed::Tensor;

struct Gelu {
  __device__ float operator()(float x) const { return groundspeed::gelu(x); }
};

Tensor run(Tensor x) { return groundspeed::map("gelu/cuda_rational", Gelu{}, x); }

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
