"""The backward pass of rms_norm: gradients of x [M, N] and weight [N], from the saved rstd [M].

With h = x · rstd and g = grad_output · weight, averages taken over a row,

    grad_x = (g - h · avg(g · h)) · rstd,    grad_weight = sum over rows of grad_output · h,

the derivative of y = x · rsqrt(mean(x²) + 1e-6) · weight (Zhang and Sennrich, "Root Mean Square Layer Normalization",
2019) where rstd is what the forward pass had: rstd is float32 whatever the dtype, as frameworks keep it. The operator
is this formula for whatever rstd it is given. Memory-bound: about 9 operations for three memory accesses an element.

grad_output is N(0, 1) up to 256 rows and shrinks beyond, so that grad_weight stays N(0, 256) about; grad_x is of the
size of grad_output · rstd. ``large`` check shapes (impls/_specs/rows.py) have values of N(0, 400²), whose squares
overflow float16; their rstd is 1/400, and so is grad_x.

Tolerance. float32: h and g are rounded at 2^-24 each, avg(g·h) is a sum of N terms of either sign, off by a few 2^-24
of their root mean square: grad_x within 5·2^-24·5 = 1.5e-6 of values up to 5. A column's sum over the rows is added up
in two stages, and errors of the second count: n partial sums one after the other, the k-th of size 16·sqrt(k/n), are
off by some 0.2·2^-23·16·sqrt(n), 6e-6 for n = 256, and by five times that in the worst column. On an H200, sums of 128
(16384 rows of N(0, 1)) were off by 2.1e-4 in eager and by 9e-5 in the kernels here, an eighth of which is 2.6e-5 and
1.1e-5: atol 5e-5. A 16-bit output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16
off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight

EPSILON = 1e-6


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """grad_output and x [M, N], weight [N] in 0.5 to 1.5, in one dtype, and rstd [M] of x in float32."""
    import torch

    from .._specs.rows import matrix
    from .._specs.upstream import upstream

    x = matrix(generator, dtype, device, M, N, layout)
    grad_output = upstream(generator, dtype, device, M, N, layout)
    scale = 0.5 + torch.rand(N, generator=generator, dtype=torch.float32, device=device)
    rstd = torch.rsqrt(x.float().square().mean(dim=-1) + EPSILON)
    return {
        "grad_output": data(grad_output),
        "x": data(x),
        "weight": weight(scale.to(dtype)),
        "rstd": data(rstd),
    }


def reference(grad_output, x, weight, rstd):
    normal = x * rstd[:, None]
    scaled = grad_output * weight
    slope = (scaled * normal).mean(dim=-1, keepdim=True)
    return (scaled - normal * slope) * rstd[:, None], (grad_output * normal).sum(dim=0)


def flops(M, N, layout="contiguous"):
    """Two products for h and g, two operations for each of two sums, three for grad_x: 9 an element."""
    return 9 * M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=(2 * M * N + N) * itemsize + 4 * M, write=(M * N + N) * itemsize)


def rows(M, N, layout="contiguous"):
    return M


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=rows,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=5e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=5e-5),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=5e-5),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 1},
        {"M": 7, "N": 1000},
        {"M": 3, "N": 4097},
        {"M": 11, "N": 768, "layout": "strided"},
        {"M": 6, "N": 2048, "layout": "large"},
        {"M": 19, "N": 40},
        {"M": 2, "N": 16392},
    ),
    bench_shapes=(
        {"M": 1024, "N": 1024},
        {"M": 4096, "N": 1024},
        {"M": 16384, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 2048, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=1024, N=1024),),
        "core": (case("float32", M=16384, N=4096), case("bfloat16", M=16384, N=4096)),
    },
)
