"""Seven kernels: norm, one projection, flash attention, a product with its residual, norm, product and GELU, product.

With n = B·S·D elements and F = 4D: norms 4n, projection 4n, attention 4n, output projection with the residual 3n, the
MLP's products 11n with GELU and residual in their epilogues: 26n, and scores never leave the chip. Compute-bound in
the products. A norm is a kernel of its own, since it needs whole rows before a product can begin.

Predicted for D = 1024, S = 512 in 16 bits, from 4.3 TB/s and 90 % of 770 TFLOP/s in the products: at batch 8 eager
takes 145 µs to multiply, 125 µs for its passes over 67 MB of scores, and 45 µs for other passes that this one does not
make: 315 µs against 175 µs, 1.8 times. At batch 32 the same ratio; at batch 1, where every kernel is short, the 15
launches less count, some 1.5 µs each: 1.6 times.

Reached on nvidia-h200 at 968ac8c4: 818 µs for bfloat16 B=32,S=512,D=1024,H=16,F=4096, 525 TFLOP/s, 67 % of the compute
ceiling, 2.61 times as fast as torch_eager.
"""

import torch

from .._triton.attention import attention_flash, flash_attention, unsupported_size
from .._triton.linear import linear, linear_kernel
from .._triton.rows import block_for, warps_for
from ..layer_norm.triton_row import EPSILON, layer_norm_row
from .packed import in_heads, packed_projections

__all__ = ["attention_flash", "layer_norm_row", "linear_kernel", "prepare", "unsupported"]


def unsupported(dtype, B, S, D, H, F, layout="contiguous"):
    return unsupported_size(dtype, D // H)


def layer_norm(x, weight, bias):
    """Of the rows of a contiguous [M, N]."""
    rows, columns = x.shape
    y = torch.empty_like(x)
    if rows:
        block = block_for(columns)
        launch = layer_norm_row[(rows,)]
        launch(x, weight, bias, y, columns, 1, columns, EPSILON, BLOCK=block, num_warps=warps_for(block))
    return y


def prepare(x, heads, **p):
    count = int(heads)
    projection, bias = packed_projections(p)
    batches, length, width = x.shape

    def run():
        rows = x.contiguous().view(-1, width)
        normed = layer_norm(rows, p["norm1_weight"], p["norm1_bias"])
        query, key, value = in_heads(linear(normed, projection, bias), batches, length, count)
        attended = flash_attention(query, key, value, causal=True, heads_together=True)
        together = attended.transpose(1, 2).reshape(-1, width)
        h = linear(together, p["output"], p["output_bias"], residual=rows)
        normed = layer_norm(h, p["norm2_weight"], p["norm2_bias"])
        activated = linear(normed, p["up"], p["up_bias"], with_gelu=True)
        return linear(activated, p["down"], p["down_bias"], residual=h).view(x.shape)

    run()
    return run
