"""ReLU of a vector that lies on one GPU, its work split over several, the result on the first again.

``W`` is the world size, ``N`` the elements of x, which rank 0 has; the others are given an empty x and return an empty
tensor. A ReLU moves 2·N elements of the GPU's own memory; splitting sends (W-1)/W of them over the link and as many
back, which is an order slower: on one GPU the whole is done before the first shard has arrived. What can be won is
overlap, of copies with each other and with the work, and that is what the ladder shows: everything after another,
pieces on both ways at once, one kernel without a copy. The ceiling is the rate of copies between two GPUs in both
directions at once; torch_local, which uses no other GPU, is beyond it.

No step of a ReLU rounds, hence the tolerance: the output must be exact in every dtype.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, W, N, layout="contiguous"):
    import torch

    from .._specs.vectors import vector

    whole = {"x": data(vector(generator, dtype, device, N, layout))}
    return [whole, *({"x": data(torch.empty(0, dtype=dtype, device=device))} for _ in range(W - 1))]


def reference(rank, tensors):
    import torch

    return torch.relu(tensors[rank]["x"])


def flops(W, N, layout="contiguous"):
    return -(-N // W)


def traffic(itemsize, W, N, layout="contiguous"):
    """Of rank 0, which has the vector and gets the result."""
    return Traffic(read=N * itemsize, write=N * itemsize)


def bus_bytes(itemsize, W, N, layout="contiguous"):
    from .._specs.ranks import scattered_bytes

    return scattered_bytes(W, N * itemsize)


SIZES = (1048576, 16777216, 134217728)

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
        {"W": 2, "N": 70001, "layout": "offset"},
    ),
    bench_shapes=({"W": 2, "N": 65536}, *({"W": world, "N": size} for world in (1, 2, 4, 8) for size in SIZES)),
    tiers={
        "small": (case("float32", W=2, N=65536),),
        "core": (
            case("float32", W=1, N=16777216),
            case("float32", W=2, N=16777216),
            case("float32", W=2, N=134217728),
            case("float16", W=2, N=134217728),
        ),
    },
    bound="peer",
    ladders={"overlap": ("torch_eager", "torch_overlap", "cuda_push")},
    world="W",
    bus_bytes=bus_bytes,
)
