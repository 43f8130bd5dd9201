"""The backward pass of cross_entropy: the gradient of logits x [M, V], from the log-sum-exp that the forward pass
saved.

With p = exp(x - lse) for the row's lse = log Σ_j exp(x[i, j]), and grad_output [M], a gradient for each row's loss,

    grad_x[i, j] = grad_output[i] · (p[i, j] - [j = target[i]]),

the derivative of loss[i] = lse[i] - x[i, target[i]] (Bishop, "Pattern Recognition and Machine Learning", 4.3.4). A
fused forward pass keeps lse, M numbers in float32, and x; PyTorch's keeps M·V log-probabilities, a second tensor of the
size of the logits. The operator is this formula for whatever lse it is given. Memory-bound: a read and a write for 4
operations an element. V = 50257 makes rows that are not 16-byte aligned. ``large`` check shapes have every logit
shifted by 10000, where exp overflows unless lse is subtracted first.

x is N(0, 3²) and grad_output N(0, 1). Tolerance: with d = lse - x, exp(-d) is off by (1 + d)·2^-23 of itself, 3e-6 at d
= 24, and at the target, where p <= 1 cancels, by 2^-23 in absolute terms: times gradients of up to 5, atol 2e-6; rtol
1e-5 leaves a factor of 3. Most elements are smaller than atol: the norm, 1e-5 in float32, is for them. A 16-bit output
is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided

LAYOUTS = ("contiguous", "strided", "large")


def inputs(generator, dtype, device, M, V, layout="contiguous"):
    """grad_output [M] of N(0, 1); x [M, V] of N(0, 3²) in the layout; its lse [M] in float32; target [M] of int64."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"cross_entropy_backward: unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")
    x = 3.0 * torch.randn((M, V), generator=generator, dtype=torch.float32, device=device)
    if layout == "large":
        x += 10000.0
    x = x.to(dtype)
    grad_output = torch.randn(M, generator=generator, dtype=torch.float32, device=device).to(dtype)
    target = torch.randint(V, (M,), generator=generator, device=device)
    return {
        "grad_output": data(grad_output),
        "x": data(strided(x) if layout == "strided" else x),
        "lse": data(torch.logsumexp(x.float(), dim=-1)),
        "target": data(target),
    }


def reference(grad_output, x, lse, target):
    import torch

    p = torch.exp(x - lse[:, None])
    p[torch.arange(len(target), device=target.device), target] -= 1.0
    return p * grad_output[:, None]


def flops(M, V, layout="contiguous"):
    """Subtraction, exponential, subtraction at the target, product: 4 a logit, the exponential counted as one."""
    return 4 * M * V


def traffic(itemsize, M, V, layout="contiguous"):
    return Traffic(read=M * (V + 1) * itemsize + 12 * M, write=M * V * itemsize)


def rows(M, V, layout="contiguous"):
    return M


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=rows,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=2e-6),
        "float16": Tolerance(rtol=2.0**-10, atol=2e-6),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2e-6),
    },
    check_shapes=(
        {"M": 0, "V": 8},
        {"M": 3, "V": 1},
        {"M": 7, "V": 1001},
        {"M": 5, "V": 768, "layout": "strided"},
        {"M": 6, "V": 2048, "layout": "large"},
        {"M": 3, "V": 50257},
    ),
    bench_shapes=(
        {"M": 64, "V": 32000},
        {"M": 512, "V": 32000},
        {"M": 4096, "V": 32000},
        {"M": 2048, "V": 50257},
        {"M": 2048, "V": 128256},
    ),
    tiers={
        "small": (case("float32", M=64, V=32000),),
        "core": (case("bfloat16", M=2048, V=50257), case("float32", M=2048, V=128256)),
    },
)
