"""Memory-efficient attention in PyTorch, CUTLASS products of sm_80 around an online softmax, float32 too.

Compute-bound: 4·D FLOPs a pair; q, k, v and the output cross DRAM once. Float32 products are made of three TF32
products, which keeps float32's accuracy at a third of the tensor cores' TF32 rate. Predicted: behind flash in 16-bit
types, the fastest in float32.

Reached on nvidia-h200 at 968ac8c4: 3.15 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 174 TFLOP/s, 22 % of the
compute ceiling, 3.54 times as fast as torch_eager.
"""

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if D % 8:
        return "memory-efficient attention reads rows by 16-byte vectors: head dimensions in multiples of 8"
    return fused_refusal("memory-efficient attention", B, without_gpu=False)


def prepare(q, k, v, causal):
    return runner(SDPBackend.EFFICIENT_ATTENTION, q, k, v, causal)
