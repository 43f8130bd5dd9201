// The two kernels of a fold launched in a loop from C++: eager's chain without eager's host.
//
// Bound by launches: a bare launch costs the host some 2 µs, a third of what dispatch, allocation and launch take from
// Python. Each kernel reads and writes the vector, which stays in the L2, one element a thread: so few elements give the
// device more threads than vectors would. Prediction: half of torch_eager's call time, and its device time less the
// waits for the host.
//
// Reached on nvidia-h200 at 968ac8c4: 66.8 µs for float32 N=65536,folds=16, 7.85 GB/s, 0.18 % of the memory ceiling,
// 1.00 times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

struct Subtract {
  float point;
  __device__ float operator()(float value) const { return value - point; }
};

struct Absolute {
  __device__ float operator()(float value) const { return fabsf(value); }
};

// In place where y is x: a thread reads its element before it writes it, and nobody else's.
template <typename T, typename Step>
__global__ void __launch_bounds__(kBlock) many_small_step(const T* x, T* y, int64_t size, Step step) {
  const int64_t i = global_thread();
  if (i < size) y[i] = from_float<T>(step(to_float(x[i])));
}

// b [folds], at least one, in host memory: the host hands each launch its point.
Tensor run(Tensor x, Tensor b) {
  STD_TORCH_CHECK(b.is_cpu() && b.scalar_type() == ScalarType::Float && b.is_contiguous() && b.numel() > 0,
                  "many_small/cuda_chain: b must be float32 in host memory");
  const float* points = input_pointer<float>(b);
  return elementwise(x, "many_small/cuda_chain", [&](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    const unsigned int grid = covering_grid(size, kBlock);
    for (int64_t fold = 0; fold < b.numel(); ++fold) {
      many_small_step<<<grid, kBlock, 0, stream>>>(fold == 0 ? in : out, out, size, Subtract{points[fold]});
      many_small_step<<<grid, kBlock, 0, stream>>>(static_cast<decltype(in)>(out), out, size, Absolute{});
    }
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor b) -> Tensor", run)
