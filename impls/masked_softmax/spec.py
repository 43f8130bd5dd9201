"""Softmax of each row of [M, N] over the elements that a mask leaves: attention weights before they meet the values.

``mask`` is uint8 [M, N], 1 where an element is left out, whose result is 0; the first element of a row is never left
out. Memory-bound: an element and a byte of mask read, an element written, about 5 operations.

Inputs are logits of N(0, 3²), a third of them masked. The ``causal`` layout masks what lies right of the diagonal, as
an attention mask does: row i keeps N·(i + 1)/M elements, rounded up.

Tolerance as softmax's: exp carries a relative error of about (1 + d)·2^-23 at a distance d from the maximum, 3e-6 at
d = 24, and the sum adds a few 2^-24; a 16-bit output is rounded once and rtol allows twice that; float16 below 2^-14
has a spacing of 2^-24.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """x [M, N] of N(0, 3²) and mask [M, N] of uint8 in the named layout."""
    import torch

    x = (3.0 * torch.randn((M, N), generator=generator, dtype=torch.float32, device=device)).to(dtype)
    if layout == "causal":
        kept = -(-N * torch.arange(1, M + 1, device=device) // M)
        mask = (torch.arange(N, device=device)[None, :] >= kept[:, None]).to(torch.uint8)
    else:
        mask = (torch.rand((M, N), generator=generator, device=device) < 1 / 3).to(torch.uint8)
        mask[:, :1] = 0
    return {"x": data(strided(x) if layout == "strided" else x), "mask": data(mask)}


def reference(x, mask):
    import torch

    return torch.softmax(x.masked_fill(mask != 0, float("-inf")), dim=-1)


def flops(M, N, layout="contiguous"):
    """Maximum, subtraction, exponential, sum and division: 5 an element."""
    return 5 * M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=M * N * (itemsize + 1), write=M * N * itemsize)


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
        "float32": Tolerance(rtol=1e-5, atol=1e-10),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1e-10),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 1},
        {"M": 7, "N": 1001},
        {"M": 5, "N": 768, "layout": "strided"},
        {"M": 9, "N": 2048, "layout": "causal"},
        {"M": 3, "N": 16384},
        {"M": 70, "N": 16400},
        {"M": 2, "N": 32776},
    ),
    bench_shapes=(
        {"M": 4096, "N": 1024},
        {"M": 16384, "N": 2048, "layout": "causal"},
        {"M": 16384, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 2048, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=1024),),
        "core": (
            case("float32", M=4096, N=1024),
            case("bfloat16", M=16384, N=2048, layout="causal"),
            case("float32", M=16384, N=4096),
            case("float32", M=2048, N=32768),
        ),
    },
)
