"""One program a block of pixels, a pixel's three channels in three registers, the weights folded.

Bound by memory: one pass, 6 elements a pixel. Channels lie 3 elements apart, so each of the three loads and stores
uses a third of the sectors it touches; L1 serves the loads again, the L2 joins the stores. Prediction: short of
cuda_vec, whose accesses are 16 bytes wide.

Reached on nvidia-h200 at 968ac8c4: 2.97 ms for float32 N=1024,H=512,W=512, 2.17 TB/s, 51 % of the memory ceiling, 5.99
times as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

from .affine import fold_packed

BLOCK = 512  # pixels a program: four a thread
WARPS = 4


@triton.jit
def normalize_color_pixel(x_ptr, y_ptr, weights_ptr, pixels, BLOCK: tl.constexpr):
    pixel = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    x0 = tl.load(x_ptr + 3 * pixel, mask=inside).to(tl.float32)
    x1 = tl.load(x_ptr + 3 * pixel + 1, mask=inside).to(tl.float32)
    x2 = tl.load(x_ptr + 3 * pixel + 2, mask=inside).to(tl.float32)
    for d in tl.static_range(3):
        y = tl.load(weights_ptr + 9 + d)
        y += x0 * tl.load(weights_ptr + d)
        y += x1 * tl.load(weights_ptr + 3 + d)
        y += x2 * tl.load(weights_ptr + 6 + d)
        tl.store(y_ptr + 3 * pixel + d, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x, mean, std, M):
    weights = fold_packed(mean, std, M)

    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        pixels = y.numel() // 3
        if pixels:
            grid = (triton.cdiv(pixels, BLOCK),)
            normalize_color_pixel[grid](source, y, weights, pixels, BLOCK=BLOCK, num_warps=WARPS)
        return y

    return run
