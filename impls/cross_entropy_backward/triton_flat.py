"""Blocks of the whole matrix in memory order, so that rows of odd length are moved by 16-byte vectors too.

Memory-bound: 2·M·V elements. A block of 2048 elements begins at a multiple of 16 bytes wherever rows begin, and meets
two rows at most: which one an element belongs to, and with it its lse, gradient and target, is a comparison. (Blocks of
a row would begin at odd addresses where V = 50257, and Triton would load single elements.) Rows shorter than a block
look their numbers up one by one. Strided logits are copied first. Predicted: near the ceiling for a read and a write at
every V.

Reached on nvidia-h200 at 968ac8c4: 528 µs for float32 M=2048,V=128256, 3.98 TB/s, 93 % of the memory ceiling, 3.89
times as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

from .._triton.rounding import rounded

BLOCK = 2048
WARPS = 4


@triton.jit
def cross_entropy_backward_flat(
    grad, x, lse, target, grad_x, size, M, V, LONG: tl.constexpr, INTERPRETED: tl.constexpr, BLOCK: tl.constexpr
):
    """size is M · V: a multiple of 16 tells Triton that a vector is inside as a whole. LONG: V >= BLOCK."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = tl.arange(0, BLOCK)
    row = first // V
    column = (first - row * V).to(tl.int32) + offsets
    inside = first + offsets < size
    if LONG:
        following = tl.minimum(row + 1, M - 1)
        beyond = column >= V
        column = tl.where(beyond, column - V, column)
        shift = tl.where(beyond, tl.load(lse + following), tl.load(lse + row))
        scale = tl.where(beyond, tl.load(grad + following).to(tl.float32), tl.load(grad + row).to(tl.float32))
        wanted = tl.where(beyond, tl.load(target + following).to(tl.int32), tl.load(target + row).to(tl.int32))
    else:
        rows = row + column // V
        column = column % V
        shift = tl.load(lse + rows, mask=inside, other=0.0)
        scale = tl.load(grad + rows, mask=inside, other=0.0).to(tl.float32)
        wanted = tl.load(target + rows, mask=inside, other=0).to(tl.int32)
    p = tl.exp(tl.load(x + first + offsets, mask=inside, other=0.0).to(tl.float32) - shift)
    result = tl.where(column == wanted, p - 1.0, p) * scale
    tl.store(grad_x + first + offsets, rounded(result, grad_x.dtype.element_ty, INTERPRETED), mask=inside)


def prepare(grad_output, x, lse, target):
    rows, length = x.shape
    fixed = {"LONG": length >= BLOCK, "INTERPRETED": bool(triton.knobs.runtime.interpret), "num_warps": WARPS}

    def run():
        logits = x.contiguous()
        grad_x = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if grad_x.numel():
            cross_entropy_backward_flat[(triton.cdiv(rows * length, BLOCK),)](
                grad_output, logits, lse, target, grad_x, rows * length, rows, length, BLOCK=BLOCK, **fixed
            )
        return grad_x

    run()
    return run
