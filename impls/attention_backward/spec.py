"""The backward pass of attention, out = P · v with P = softmax(q · kᵀ / √D): gradients of q, k and v of [B, H, S, D].

From grad_output, q, k, v, out [B, H, S, D] and the saved lse [B, H, S], the log-sum-exp of each query's scores:

    P = exp(q · kᵀ / √D - lse),  delta = rowsum(grad_output ∘ out),  grad_scores = P ∘ (grad_output · vᵀ - delta),
    grad_q = grad_scores · k / √D,  grad_k = grad_scoresᵀ · q / √D,  grad_v = Pᵀ · grad_output

(Dao, "FlashAttention-2", 2023, algorithm 2). Causal: query i sees the keys 0 to i, P is 0 elsewhere. lse is float32
whatever the dtype, as frameworks keep it; the operator is this for whatever lse and out it is given. Compute-bound:
10·D FLOPs for each pair of a query and a key that it sees, five products, as in FlashAttention's own figures; a kernel
that computes P and its gradient for grad_q anew does 14·D. ``causal`` is a weight, int32 [1].

Of PyTorch's back ends the flash kernels alone are here. The composite one has no backward pass of its own: autograd
goes through its forward pass, which knows nothing of the lse and out that are given. Memory-efficient attention and
cuDNN have backward kernels for GPUs alone, which take lse and out as their own forward passes lay them out: not tried
yet.

q, k, v and grad_output are N(0, 1). P spreads over about S/e keys, and each gradient has a standard deviation of about
sqrt(e/S), the same for all three. Layouts as attention's: ``transposed`` is a [B, S, H, D] tensor seen as [B, H, S, D],
``strided`` has a gap of one element between neighbours.

Tolerance, with a unit roundoff u (2^-8 bfloat16, 2^-11 float16): scores that are kept in 16 bits are rounded once,
which puts a weight off by sqrt(5)·0.4·u (attention's spec), and P's gradient, grad_scores and the result are rounded
once each, 0.4·u: 1.15·u in norm, where a fused kernel has 0.7·u. norm = 2·u admits both and partial sums that are
rounded, and refuses a missing delta or key, another scale, a mask that is off by one. Element by element the first
causal rows are the worst: two weights of 1/2 off by 4·u each, times a gradient of P over √D of up to 4 and keys that
lie 4 apart: atol = 16·u. An lse that the referee changes makes weights larger than 1, whose roundings grow with them:
rtol is two units in the last place; with one, eager in bfloat16 was 1.1 times as far off on an H200. Float32: as
attention's, with a product more: atol = 2e-5, rtol = 1e-5, norm = 5e-6, which TF32 products (3e-4) exceed by far.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided, weight

LAYOUTS = ("contiguous", "transposed", "strided")


def inputs(
    generator: Any, dtype: Any, device: Any, B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """grad_output, q, k, v and their out [B, H, S, D] in the layout, lse [B, H, S] in float32, causal int32 [1]."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"attention_backward: unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")

    def laid(x: Any) -> Any:
        if layout == "transposed":
            return x.transpose(1, 2).contiguous().transpose(1, 2)
        return strided(x) if layout == "strided" else x

    def drawn() -> Any:
        return torch.randn((B, H, S, D), generator=generator, device=device, dtype=torch.float32).to(dtype)

    made = {name: drawn() for name in ("grad_output", "q", "k", "v")}
    out = torch.empty((B, H, S, D), dtype=dtype, device=device)
    lse = torch.empty((B, H, S), dtype=torch.float32, device=device)
    for batch in range(B):
        for head in range(H):
            q, k, v = (made[name][batch, head].float() for name in ("q", "k", "v"))
            scores = masked(q @ k.T / math.sqrt(D), causal)
            lse[batch, head] = torch.logsumexp(scores, dim=-1)
            out[batch, head] = torch.softmax(scores, dim=-1) @ v
    made["out"] = out
    flag = torch.tensor([causal], dtype=torch.int32, device=device)
    return {**{name: data(laid(x)) for name, x in made.items()}, "lse": data(lse), "causal": weight(flag)}


def masked(scores: Any, causal: int) -> Any:
    """Scores [S, S] of one head, those of later keys -inf where causal, in place."""
    import torch

    if not causal:
        return scores
    hidden = torch.ones(scores.shape, dtype=torch.bool, device=scores.device).triu_(1)
    return scores.masked_fill_(hidden, float("-inf"))


def reference(grad_output: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, causal: Any) -> Any:
    """The float64 formula, head by head: the scores of all heads at once would not fit."""
    import torch

    scale = 1.0 / math.sqrt(q.shape[-1])
    grads = [torch.empty(q.shape, dtype=q.dtype, device=q.device) for _ in range(3)]
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            g, queries, keys, values = (x[batch, head] for x in (grad_output, q, k, v))
            weights = torch.exp(masked(queries @ keys.T * scale, int(causal)) - lse[batch, head][:, None])
            delta = (g * out[batch, head]).sum(dim=-1, keepdim=True)
            grad_scores = (g @ values.T - delta).mul_(weights).mul_(scale)
            grads[0][batch, head] = grad_scores @ keys
            grads[1][batch, head] = grad_scores.T @ queries
            grads[2][batch, head] = weights.T @ g
    return tuple(grads)


def flops(B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of D elements, for each pair, in five products."""
    pairs = S * (S + 1) // 2 if causal else S * S
    return 10 * D * B * H * pairs


def traffic(itemsize: int, B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> Traffic:
    """grad_output, q, k, v, out and lse read once, three gradients written once."""
    size = B * H * S * D * itemsize
    return Traffic(read=5 * size + 4 * B * H * S, write=3 * size)


def sequences(B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> int:
    return B


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=sequences,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=2e-5, norm=5e-6),
        "float16": Tolerance(rtol=2.0**-9, atol=2.0**-7, norm=2.0**-10),
        "bfloat16": Tolerance(rtol=2.0**-6, atol=2.0**-4, norm=2.0**-7),
    },
    check_shapes=(
        {"B": 0, "H": 2, "S": 8, "D": 64, "causal": 1},
        {"B": 2, "H": 2, "S": 1, "D": 64, "causal": 1},
        {"B": 1, "H": 3, "S": 17, "D": 128, "causal": 1},
        {"B": 1, "H": 2, "S": 257, "D": 64, "causal": 1},
        {"B": 1, "H": 1, "S": 200, "D": 128, "causal": 0},
        {"B": 2, "H": 2, "S": 72, "D": 128, "causal": 1, "layout": "transposed"},
        {"B": 1, "H": 2, "S": 129, "D": 64, "causal": 0, "layout": "strided"},
        {"B": 1, "H": 2, "S": 70, "D": 33, "causal": 1},
    ),
    bench_shapes=(
        {"B": 1, "H": 4, "S": 256, "D": 64, "causal": 1},
        {"B": 2, "H": 16, "S": 4096, "D": 64, "causal": 1},
        {"B": 1, "H": 16, "S": 8192, "D": 128, "causal": 1},
        {"B": 1, "H": 16, "S": 8192, "D": 128, "causal": 0},
        {"B": 1, "H": 16, "S": 16384, "D": 128, "causal": 1},
    ),
    tiers={
        "small": (case("float32", B=1, H=4, S=256, D=64, causal=1),),
        "core": (
            case("float16", B=2, H=16, S=4096, D=64, causal=1),
            case("bfloat16", B=1, H=16, S=8192, D=128, causal=1),
        ),
    },
)
