"""cuDNN's fused attention through PyTorch, an engine built for the GPU and the shape, on Hopper by wgmma.

Compute-bound: 4·D FLOPs a pair; q, k, v and the output cross DRAM once. The first call builds the engine. Predicted:
the fastest of PyTorch's back ends on Hopper.

Reached on nvidia-h200 at 968ac8c4: 806 µs for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 682 TFLOP/s, 87 % of the compute
ceiling, 13.9 times as fast as torch_eager.
"""

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if dtype == "float32":
        return "cuDNN's fused attention takes float16 and bfloat16"
    if D % 8:
        return "cuDNN's fused attention takes head dimensions in multiples of 8"
    if S == 1:
        return "PyTorch does not ask cuDNN about sequences of length 1"
    return fused_refusal("cuDNN attention", B, without_gpu=False)


def prepare(q, k, v, causal):
    return runner(SDPBackend.CUDNN_ATTENTION, q, k, v, causal)
