"""FlashAttention-2 in PyTorch, where scores stay in registers, block by block, under a running maximum and sum.

Compute-bound: 4·D FLOPs a pair; q, k, v and the output cross DRAM once, k and v are read again from L2 for every block
of queries. On a GPU it is built on mma.sync of sm_80, so Hopper's wgmma rate is out of reach. On a CPU PyTorch has a
flash kernel of its own. Predicted: behind cuDNN by a third and more on Hopper.

Reached on nvidia-h200 at 968ac8c4: 1.53 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 359 TFLOP/s, 46 % of the
compute ceiling, 7.30 times as fast as torch_eager.
"""

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    import torch

    if torch.cuda.is_available():
        if dtype == "float32":
            return "the flash kernel for CUDA takes float16 and bfloat16"
        if D % 8:
            return "PyTorch pads head dimensions to multiples of 8 for its flash kernel and returns a view with gaps"
    return fused_refusal("flash attention", B, without_gpu=True)


def prepare(q, k, v, causal):
    return runner(SDPBackend.FLASH_ATTENTION, q, k, v, causal)
