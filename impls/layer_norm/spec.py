"""Layer normalisation of the last dimension of [M, N], y = (x - mean) / sqrt(variance + 1e-5) · weight + bias.

The variance is the mean squared deviation (no Bessel correction). Memory-bound: about 8 operations for two memory
accesses an element; weight and bias are read once.

Layouts of check shapes (impls/_specs/rows.py): ``large`` has values of N(0, 400²), whose squares overflow float16, the
case that broke a half-precision LayerNorm in the sources; ``shifted`` is N(64, 1), where E[x²] - E[x]² cancels and
float32 keeps about three digits of it.

Tolerance: float32 rounds the mean by at most a few 2^-24 of the largest value, 64 + 4 in ``shifted``, where one is the
standard deviation: 68 · 2^-24 · 2 = 8e-6 before the weight of up to 1.5, hence atol 2e-5. rtol covers sums of N
squares. A 16-bit output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight

EPSILON = 1e-5


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """x [M, N]; weight [N] in 0.5 to 1.5 and bias [N] of N(0, 1), both in x's dtype."""
    import torch

    from .._specs.rows import matrix

    scale = 0.5 + torch.rand(N, generator=generator, dtype=torch.float32, device=device)
    shift = torch.randn(N, generator=generator, dtype=torch.float32, device=device)
    return {
        "x": data(matrix(generator, dtype, device, M, N, layout)),
        "weight": weight(scale.to(dtype)),
        "bias": weight(shift.to(dtype)),
    }


def reference(x, weight, bias):
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)


def flops(M, N, layout="contiguous"):
    """Sum, deviation, square, sum, and a difference, two products and a sum for the output: 8 an element."""
    return 8 * M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=(M * N + 2 * N) * itemsize, write=M * N * itemsize)


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
        "float32": Tolerance(rtol=1e-5, atol=2e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=2e-5),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2e-5),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 1},
        {"M": 70, "N": 16400},
        {"M": 3, "N": 4097},
        {"M": 5, "N": 768, "layout": "strided"},
        {"M": 6, "N": 2048, "layout": "large"},
        {"M": 6, "N": 2048, "layout": "shifted"},
        {"M": 2, "N": 32776},
    ),
    bench_shapes=(
        {"M": 4096, "N": 768},
        {"M": 16384, "N": 1024},
        {"M": 16384, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 2048, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=768),),
        "core": (
            case("float16", M=4096, N=768),
            case("float32", M=16384, N=4096),
            case("bfloat16", M=16384, N=4096),
            case("float32", M=2048, N=32768),
        ),
    },
)
