"""The MLP of a transformer, y = gelu(x·U + b)·D, its weights split over the ranks: tensor-parallel.

Every rank has all of x [T, M], data, and 1/W of the weights: columns of U [M, F/W] with their part of b [F/W], and rows
of D [F/W, M]. So a rank's hidden values are its own, GELU included, and its product with its rows of D is a partial
sum of all of y [T, M]: one all-reduce at the end is all that is sent (Megatron-LM, arXiv 1909.08053, section 3). GELU
is the exact one, by the error function.

Compute-bound: 4·T·M·F/W FLOPs a rank; 2 (W-1)/W·T·M elements must leave each rank, which takes as long as the products
where F is small. What can be won is their overlap.

x is drawn from N(0, 1), U from N(0, 1/M), b from N(0, 1), D from N(0, 1/F): z is N(0, 2), its GELU has a mean square of
0.92, and so has y. Tolerances: a rounding costs 0.41·u in norm (u = 2^-11, 2^-8). z passes 1.1 times its error through
GELU; h, each rank's partial sum and y are rounded, and a ring of W ranks rounds W-1 times on the way: at W = 8 less
than 0.41·u·sqrt(4.2 + 6) = 1.3·u, norm = 1.5·u. An element's error is normal whatever its own size: six standard
deviations of 1.3·u·0.96 are 7.5·u, atol = 8·u, rtol = 2·u.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight


def inputs(generator, dtype, device, W, T, M, F, layout="contiguous"):
    import torch

    from .._specs.factors import activations, weights

    x = activations(generator, dtype, device, T, M, layout)
    up = weights(generator, dtype, device, M, F)
    bias = torch.randn(F, generator=generator, device=device, dtype=torch.float32).to(dtype)
    down = weights(generator, dtype, device, F, M)
    columns, parts, rows = up.chunk(W, 1), bias.chunk(W), down.chunk(W)
    return [
        {
            "x": data(x),
            "up": weight(columns[rank].contiguous()),
            "bias": weight(parts[rank].contiguous()),
            "down": weight(rows[rank].contiguous()),
        }
        for rank in range(W)
    ]


def reference(rank, tensors):
    import torch

    up, bias, down = (torch.cat([held[name] for held in tensors], axis) for name, axis in PARTS)
    return torch.nn.functional.gelu(tensors[rank]["x"] @ up + bias) @ down


PARTS = (("up", 1), ("bias", 0), ("down", 0))


def flops(W, T, M, F, layout="contiguous"):
    """A multiplication and an addition for each of 2·T·M·F/W products; what GELU costs is left out."""
    return 4 * T * M * (F // W)


def traffic(itemsize, W, T, M, F, layout="contiguous"):
    return Traffic(read=(T * M + 2 * M * (F // W) + F // W) * itemsize, write=T * M * itemsize)


def bus_bytes(itemsize, W, T, M, F, layout="contiguous"):
    from .._specs.ranks import scattered_bytes

    return 2 * scattered_bytes(W, T * M * itemsize)


def tokens(W, T, M, F, layout="contiguous"):
    return T


SHAPES = (
    {"T": 64, "M": 128, "F": 512},
    {"T": 2048, "M": 1024, "F": 4096},
    {"T": 4096, "M": 4096, "F": 16384},
)

SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=tokens,
    bound="compute",
    dtypes=("float16", "bfloat16"),
    tolerance={
        "float16": Tolerance(rtol=2.0**-10, atol=8 * 2.0**-11, norm=1.5 * 2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=8 * 2.0**-8, norm=1.5 * 2.0**-8),
    },
    check_shapes=(
        {"W": 1, "T": 3, "M": 33, "F": 20},
        {"W": 2, "T": 1, "M": 8, "F": 16},
        {"W": 2, "T": 33, "M": 65, "F": 126},
        {"W": 2, "T": 70, "M": 72, "F": 144, "layout": "strided"},
    ),
    bench_shapes=tuple({"W": world, **shape} for world in (1, 2, 4, 8) for shape in SHAPES),
    tiers={
        "small": (case("bfloat16", W=2, T=64, M=128, F=512),),
        "core": (
            case("bfloat16", W=1, T=4096, M=4096, F=16384),
            case("bfloat16", W=2, T=2048, M=1024, F=4096),
            case("bfloat16", W=2, T=4096, M=4096, F=16384),
            case("float16", W=2, T=4096, M=4096, F=16384),
        ),
    },
    world="W",
    bus_bytes=bus_bytes,
)
