// FlashAttention-3's way on Hopper, bulk copies, wgmma out of shared memory, softmax beside the products of two tiles.
//
// Compute-bound: 4·D FLOPs for a pair that a query sees and as much for half of the masked tiles on the diagonal. q and
// the output cross DRAM once, k and v are read from L2 once for each block of 128 queries. In the time in which a
// multiprocessor makes the 16 exponentials of one clock, its tensor cores finish 8 pairs of D = 128 or 16 of D = 64, so
// the softmax must run beside the products. Where cuda_flash spends registers and shared-memory bandwidth on fragments,
// wgmma reads keys and values where the tensor memory accelerator has put them. Predicted: 80 % of cuDNN and more at
// D = 128, less at D = 64, where exponentials and products take equally long.
//
// Reached on nvidia-h200 at 968ac8c4: 837 µs for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 657 TFLOP/s, 84 % of the
// compute ceiling, 13.4 times as fast as torch_eager.
#include "../_cuda/flash_wgmma.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "attention/cuda_wgmma";

void require_hopper() {
  int device = 0;
  int major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  STD_TORCH_CHECK(error == cudaSuccess, kName, ": ", cudaGetErrorString(error));
  STD_TORCH_CHECK(major == 9, kName, ": wgmma exists on compute capability 9.0 only, this GPU has ", major, ".x");
}

template <typename T>
void launch(const AttentionOperands& operands, bool causal, cudaStream_t stream) {
  if (operands.size == 64) return launch_flash_wgmma<T, 64>(operands, causal, stream, kName);
  if (operands.size == 128) return launch_flash_wgmma<T, 128>(operands, causal, stream, kName);
  STD_TORCH_CHECK(false, kName, ": expected head dimension 64 or 128, got ", operands.size);
}

Tensor run(Tensor q, Tensor k, Tensor v, bool causal) {
  require_hopper();
  const AttentionOperands operands = attention_operands(q, k, v, kName);
  if (operands.out.numel() == 0) return operands.out;
  const cudaStream_t stream = current_stream(operands.out);
  switch (operands.q.scalar_type()) {
    case ScalarType::Half:
      launch<__half>(operands, causal, stream);
      break;
    case ScalarType::BFloat16:
      launch<__nv_bfloat16>(operands, causal, stream);
      break;
    default:
      STD_TORCH_CHECK(false, kName, ": expected float16 or bfloat16");
  }
  check_launch(kName);
  return operands.out;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor q, Tensor k, Tensor v, bool causal) -> Tensor", run)
