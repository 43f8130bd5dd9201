"""The vectors of all ranks, one after the other, on every rank. Bound by the link between the GPUs.

``W`` is the world size, ``N`` the elements of each rank's vector x; the output has W·N. Each rank must send and receive
(W-1)·N elements, unless the switch copies: that is the bus bandwidth's numerator (nccl-tests, doc/PERFORMANCE.md: S
(W-1)/W with S the bytes of the output). The ceiling is the rate of copies between two GPUs in both directions at once,
measured in the same session. With one rank it is a copy. No step rounds: the output must be exact.

Check shapes: one element, sizes that no vector load divides, gaps between neighbours, one and two ranks.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, W, N, layout="contiguous"):
    from .._specs.ranks import vectors

    return vectors(generator, dtype, device, W, N, layout)


def reference(rank, tensors):
    import torch

    return torch.cat([held["x"] for held in tensors])


def flops(W, N, layout="contiguous"):
    return 0


def traffic(itemsize, W, N, layout="contiguous"):
    return Traffic(read=N * itemsize, write=W * N * itemsize)


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
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"W": 1, "N": 1235},
        {"W": 2, "N": 1},
        {"W": 2, "N": 12345},
        {"W": 2, "N": 5000, "layout": "strided"},
        {"W": 2, "N": 70000, "layout": "offset"},
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
