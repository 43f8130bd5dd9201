"""The sum of a vector over all ranks, each rank keeping its own piece of it. Bound by the link between the GPUs.

``W`` is the world size, ``N`` the elements of a piece; x has W·N on every rank, the output N. Each rank must send and
receive (W-1)·N elements, unless the switch adds up: that is the bus bandwidth's numerator (nccl-tests,
doc/PERFORMANCE.md: S (W-1)/W with S the bytes of the input). The ceiling is the rate of copies between two GPUs in both
directions at once, measured in the same session. With one rank it is a copy.

A sum over W ranks rounds W-1 times: the tolerance is that of a sum of eight terms in the vector's own dtype.

Check shapes: one element, sizes that no vector load divides, gaps between neighbours, one and two ranks.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case


def inputs(generator, dtype, device, W, N, layout="contiguous"):
    from .._specs.ranks import vectors

    return vectors(generator, dtype, device, W, W * N, layout)


def reference(rank, tensors):
    import torch

    return torch.stack([held["x"].chunk(len(tensors))[rank] for held in tensors]).sum(0)


def flops(W, N, layout="contiguous"):
    return (W - 1) * N


def traffic(itemsize, W, N, layout="contiguous"):
    return Traffic(read=W * N * itemsize, write=N * itemsize)


def bus_bytes(itemsize, W, N, layout="contiguous"):
    from .._specs.ranks import scattered_bytes

    return scattered_bytes(W, W * N * itemsize)


SIZES = (4096, 1048576, 16777216, 67108864)

SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-6, atol=4e-6, norm=1e-6),
        "float16": Tolerance(rtol=2e-3, atol=8e-3, norm=1e-3),
        "bfloat16": Tolerance(rtol=1.6e-2, atol=6e-2, norm=8e-3),
    },
    check_shapes=(
        {"W": 1, "N": 1235},
        {"W": 2, "N": 1},
        {"W": 2, "N": 12345},
        {"W": 2, "N": 5000, "layout": "strided"},
        {"W": 2, "N": 35000, "layout": "offset"},
    ),
    bench_shapes=tuple({"W": world, "N": size} for world in (1, 2, 4, 8) for size in SIZES),
    tiers={
        "small": (case("float32", W=1, N=4096), case("float32", W=2, N=4096)),
        "core": (
            case("float32", W=1, N=16777216),
            case("float32", W=2, N=4096),
            case("float32", W=2, N=16777216),
            case("bfloat16", W=2, N=67108864),
        ),
    },
    bound="peer",
    world="W",
    bus_bytes=bus_bytes,
)
