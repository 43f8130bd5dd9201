// A block for each chunk of a cache's head, tensor cores for the queries that share it, then a merge (flash-decoding).
//
// Memory-bound: valid positions of both caches read once, straight into the fragments of mma.sync; of each chunk and
// query a float32 sum of values, a maximum and a sum of weights are written and read again, G/256 of its bytes in
// 16-bit types. Four warps a block and up to 8 KiB on their way a warp keep more in flight than DRAM's latency asks
// for. Float32 goes through the CUDA cores, head dimensions up to 128. Predicted: 85 % of the read ceiling and more;
// the second kernel costs a launch and some microseconds.
//
// Reached on nvidia-h200 at 968ac8c4: 146 µs for float16 B=64,H=64,G=8,S=4096,D=128,fill=ragged, 3.76 TB/s, 81 % of the
// memory ceiling, 3.18 times as fast as torch_eager.
#include "../_cuda/decode_fma.cuh"
#include "../_cuda/decode_mma.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "attention_decode/cuda_split";

template <typename T>
void launch(const DecodeOperands& operands, cudaStream_t stream) {
  if (operands.size == 64) {
    launch_decode_mma<T, 64>(operands, stream);
  } else if (operands.size == 128) {
    launch_decode_mma<T, 128>(operands, stream);
  } else {
    STD_TORCH_CHECK(false, kName, ": expected head dimension 64 or 128 in 16-bit types, got ", operands.size);
  }
  launch_decode_merge<T, 128>(operands, stream);
}

Tensor run(Tensor q, Tensor k, Tensor v, Tensor lengths) {
  const DecodeOperands operands = decode_operands(q, k, v, lengths, kName);
  if (operands.out.numel() == 0) return operands.out;
  const cudaStream_t stream = current_stream(operands.out);
  switch (operands.q.scalar_type()) {
    case ScalarType::Float:
      STD_TORCH_CHECK(operands.size <= 128, kName, ": expected a head dimension up to 128, got ", operands.size);
      launch_decode_fma<128>(operands, stream);
      launch_decode_merge<float, 128>(operands, stream);
      break;
    case ScalarType::Half:
      launch<__half>(operands, stream);
      break;
    case ScalarType::BFloat16:
      launch<__nv_bfloat16>(operands, stream);
      break;
    default:
      STD_TORCH_CHECK(false, kName, ": expected float32, float16 or bfloat16");
  }
  check_launch(kName);
  return operands.out;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor q, Tensor k, Tensor v, Tensor lengths) -> Tensor", run)
