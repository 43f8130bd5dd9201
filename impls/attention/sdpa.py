"""torch's scaled_dot_product_attention held to one of its back ends.

The back end is chosen at each call by torch.nn.attention.sdpa_kernel, as a user would: it costs the host some
microseconds and the device nothing. Fused back ends want q, k and v without gaps in the last dimension: copying is run
time.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from .mask import is_causal

__all__ = ["SDPBackend", "fused_refusal", "runner"]


def runner(backend, q, k, v, causal):
    """``run`` for attention by one SDPBackend, which raises where that back end cannot serve q, k and v."""
    flag = is_causal(causal)

    def run():
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(*map(_dense_rows, (q, k, v)), is_causal=flag)

    return run


def _dense_rows(tensor):
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def fused_refusal(kernel, B, without_gpu):
    """Why a fused back end called ``kernel`` is not asked, or None; ``without_gpu`` where it has CUDA kernels only."""
    if B == 0:
        return "an empty batch is left out: some of PyTorch's fused kernels refuse one"
    if not without_gpu and not torch.cuda.is_available():
        return f"PyTorch's {kernel} has CUDA kernels only, and this machine has no GPU"
    return None
