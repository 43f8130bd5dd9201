"""FlashAttention-2's backward kernels in PyTorch, what autograd calls behind scaled_dot_product_attention.

Compute-bound: 10·D FLOPs a pair in one loop over keys, grad_q added up by atomic operations in float32. On a GPU it is
built on mma.sync of sm_80, so Hopper's wgmma rate is out of reach. On a CPU PyTorch has a flash kernel of its own.
Fused kernels want rows without gaps: copying is run time.

Reached on nvidia-h200 at 968ac8c4: 2.57 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=1, 268 TFLOP/s, 34 % of the
compute ceiling, 11.5 times as fast as torch_eager.
"""

import torch

from .mask import is_causal


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if B == 0:
        return "an empty batch is left out: some of PyTorch's fused kernels refuse one"
    if torch.cuda.is_available():
        if dtype == "float32":
            return "the flash kernel for CUDA takes float16 and bfloat16"
        if D % 8:
            return "PyTorch pads head dimensions to multiples of 8 for its flash kernel and returns a view with gaps"
    return None


def on_gpu(grad_output, q, k, v, out, lse, causal):
    """Without dropout there is no random state, and without packed sequences there are no cumulative lengths."""
    nothing, length = lse.new_empty(0), q.shape[-2]
    return torch.ops.aten._scaled_dot_product_flash_attention_backward(
        grad_output, q, k, v, out, lse, None, None, length, length, 0.0, causal, nothing, nothing
    )


def on_cpu(grad_output, q, k, v, out, lse, causal):
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad_output, q, k, v, out, lse, 0.0, causal
    )


def dense_rows(tensor):
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def prepare(grad_output, q, k, v, out, lse, causal):
    flag = is_causal(causal)
    function = on_gpu if q.is_cuda else on_cpu

    def run():
        return function(*map(dense_rows, (grad_output, q, k, v, out)), lse, flag)

    return run
