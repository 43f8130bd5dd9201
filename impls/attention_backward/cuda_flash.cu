// FlashAttention-2's backward pass in CUDA C++ without atomic operations, by mma.sync on 16-bit types.
//
// Compute-bound: 14·D FLOPs for a pair that a query sees, 10·D of which count, since P and its gradient are computed
// for grad_k and grad_v, and again for grad_q (flash_backward_mma.cuh); inputs cross DRAM once or twice, and what
// passes by is read from L2 once for each block of 64 or 128 rows. A warp has 32 rows, so that a fragment from shared
// memory serves two products, but 16 for grad_k and grad_v at D = 128, whose two sums leave registers for no more:
// there shared memory is the bound, at half of mma.sync's rate. Predicted: 65 % of the speed of PyTorch's flash kernel,
// which does 10·D, at D = 64, and 50 % at D = 128. Float32 goes through the CUDA cores in kernels of their own,
// any head dimension up to 128.
//
// Reached on nvidia-h200 at 968ac8c4: 2.83 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=1, 243 TFLOP/s, 31 % of the
// compute ceiling, 10.5 times as fast as torch_eager.
#include "../_cuda/flash_backward_fma.cuh"
#include "../_cuda/flash_backward_mma.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "attention_backward/cuda_flash";

template <typename T>
void launch(AttentionGradients& all, bool causal, cudaStream_t stream) {
  if (all.size == 64) return launch_flash_backward_mma<T, 64>(all, causal, stream, kName);
  if (all.size == 128) return launch_flash_backward_mma<T, 128>(all, causal, stream, kName);
  STD_TORCH_CHECK(false, kName, ": expected head dimension 64 or 128 in 16-bit types, got ", all.size);
}

std::tuple<Tensor, Tensor, Tensor> run(Tensor grad_output, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse,
                                       bool causal) {
  AttentionGradients all = attention_gradients(grad_output, q, k, v, out, lse, kName);
  if (all.grads[0].numel() == 0) return {all.grads[0], all.grads[1], all.grads[2]};
  const cudaStream_t stream = current_stream(all.q);
  switch (all.q.scalar_type()) {
    case ScalarType::Float:
      STD_TORCH_CHECK(all.size <= 128, kName, ": expected a head dimension up to 128, got ", all.size);
      all.size <= 64 ? launch_flash_backward_fma<64>(all, causal, stream, kName)
                     : launch_flash_backward_fma<128>(all, causal, stream, kName);
      break;
    case ScalarType::Half:
      launch<__half>(all, causal, stream);
      break;
    case ScalarType::BFloat16:
      launch<__nv_bfloat16>(all, causal, stream);
      break;
    default:
      STD_TORCH_CHECK(false, kName, ": expected float32, float16 or bfloat16");
  }
  check_launch(kName);
  return {all.grads[0], all.grads[1], all.grads[2]};
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor grad_output, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, bool causal) "
    "-> (Tensor, Tensor, Tensor)",
    run)
