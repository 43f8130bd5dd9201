"""Cross entropy of logits [M, V] against class numbers [M], loss[i] = log Σ_j exp(x[i, j]) - x[i, target[i]].

Losses are not averaged: one number a row, in the dtype of the logits. Memory-bound: about 4 operations for each logit,
which is read once; a large vocabulary V makes the logits the largest tensor of a language model. V = 50257 makes rows
that are not 16-byte aligned. ``large`` check shapes have every logit shifted by 10000, where exp overflows unless the
maximum is subtracted.

Tolerance: with m = max x, the float32 result is m - x[target] + log Σ exp(x - m), each part rounded at about 2^-23 of
up to 30; a loss near 0 keeps that as an absolute error: atol 1e-5 is three times it. A 16-bit output is rounded once;
rtol allows twice that, since Triton's interpreter cuts bfloat16 off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided


def inputs(generator, dtype, device, M, V, layout="contiguous"):
    """x [M, V] of N(0, 3²) in the named layout, target [M] int64."""
    import torch

    x = 3.0 * torch.randn((M, V), generator=generator, dtype=torch.float32, device=device)
    if layout == "large":
        x += 10000.0
    x = x.to(dtype)
    target = torch.randint(V, (M,), generator=generator, device=device)
    return {"x": data(strided(x) if layout == "strided" else x), "target": data(target)}


def reference(x, target):
    import torch

    return torch.logsumexp(x, dim=-1) - x.gather(1, target[:, None])[:, 0]


def flops(M, V, layout="contiguous"):
    """Maximum, subtraction, exponential and sum: 4 a logit."""
    return 4 * M * V


def traffic(itemsize, M, V, layout="contiguous"):
    return Traffic(read=M * V * itemsize + 8 * M, write=M * itemsize)


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
        "float32": Tolerance(rtol=1e-5, atol=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=1e-5),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1e-5),
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
        {"M": 512, "V": 32000},
        {"M": 4096, "V": 32000},
        {"M": 2048, "V": 50257},
        {"M": 2048, "V": 128256},
    ),
    tiers={
        "small": (case("float32", M=512, V=32000),),
        "core": (
            case("float32", M=4096, V=32000),
            case("bfloat16", M=2048, V=50257),
            case("float32", M=2048, V=128256),
            case("bfloat16", M=2048, V=128256),
        ),
    },
)
