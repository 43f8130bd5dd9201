"""One program a tile, stored without a mask: a tile that ends past the row runs into the next one.

The output lies in a buffer with room behind it, so that the last tile strays into nobody else's memory.
"""

import torch
import triton
import triton.language as tl

TILE = 16


@triton.jit
def unmasked(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, DEPTH)
    a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
    b = tl.load(b_ptr + k[:, None] * N + columns[None, :], mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
    # Named: Triton would also make a product of a sum of products, and that one of lower precision.
    c = tl.dot(a, b, input_precision="ieee")
    gelu = 0.5 * c * (1.0 + tl.math.erf(c * 0.7071067811865476))
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], gelu)


def prepare(a, b):
    def run():
        (M, K), N = a.shape, b.shape[1]
        whole = triton.cdiv(M, TILE) * TILE * N + TILE
        room = torch.empty(whole, dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(M, TILE), triton.cdiv(N, TILE))
        unmasked[grid](a, b, room, M, N, K, TILE=TILE, DEPTH=triton.next_power_of_2(K))
        return room[: M * N].view(M, N)

    return run
