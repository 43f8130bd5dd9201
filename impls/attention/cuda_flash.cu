// FlashAttention-2 in CUDA C++, by mma.sync on 16-bit types, scores in registers, tiles arriving by cp.async.
//
// Compute-bound: 4·D FLOPs for a pair that a query sees and as much for half of the masked tiles on the diagonal. q and
// the output cross DRAM once, k and v are read from L2 once for each block of 128 queries. A warp multiplies 32
// queries, so a fragment that it loads from shared memory serves two products. Float32 goes through the CUDA cores in a
// kernel of its own, any head dimension up to 128. Predicted: level with PyTorch's flash back end, which is built the
// same way; at most 60 to 65 % of Hopper's peak, since its full rate is reserved to wgmma (cuda_wgmma).
//
// Reached on nvidia-h200 at 968ac8c4: 1.46 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 376 TFLOP/s, 48 % of the
// compute ceiling, 7.63 times as fast as torch_eager.
#include "../_cuda/flash_fma.cuh"
#include "../_cuda/flash_mma.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "attention/cuda_flash";

template <typename T>
void launch(const AttentionOperands& operands, bool causal, cudaStream_t stream) {
  if (operands.size == 64) return launch_flash_mma<T, 64>(operands, causal, stream, kName);
  if (operands.size == 128) return launch_flash_mma<T, 128>(operands, causal, stream, kName);
  STD_TORCH_CHECK(false, kName, ": expected head dimension 64 or 128 in 16-bit types, got ", operands.size);
}

Tensor run(Tensor q, Tensor k, Tensor v, bool causal) {
  const AttentionOperands operands = attention_operands(q, k, v, kName);
  if (operands.out.numel() == 0) return operands.out;
  const cudaStream_t stream = current_stream(operands.out);
  switch (operands.q.scalar_type()) {
    case ScalarType::Float:
      STD_TORCH_CHECK(operands.size <= 128, kName, ": expected a head dimension up to 128, got ", operands.size);
      operands.size <= 64 ? launch_flash_fma<64>(operands, causal, stream, kName)
                          : launch_flash_fma<128>(operands, causal, stream, kName);
      break;
    case ScalarType::Half:
      launch<__half>(operands, causal, stream);
      break;
    case ScalarType::BFloat16:
      launch<__nv_bfloat16>(operands, causal, stream);
      break;
    default:
      STD_TORCH_CHECK(false, kName, ": expected float32, float16 or bfloat16");
  }
  check_launch(kName);
  return operands.out;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor q, Tensor k, Tensor v, bool causal) -> Tensor", run)
