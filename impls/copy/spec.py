"""A copy of a vector, y = x: nothing but memory traffic, the operator that the copy ceiling is about.

No element changes, hence the tolerance: the output must be exact, NaN included. ``flops`` is 0.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    return {"x": data(vector(generator, dtype, device, N, layout, values))}


def reference(x):
    return x.clone()


def flops(N, layout="contiguous", values="normal"):
    return 0


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"N": 0},
        {"N": 1},
        {"N": 12345},
        {"N": 8192},
        {"N": 5000, "layout": "strided"},
        {"N": 5000, "layout": "offset"},
        {"N": 5000, "values": "special"},
    ),
    bench_shapes=(
        {"N": 16384},  # launch-bound
        {"N": 1048576},  # held by the L2
        {"N": 16777216},
        {"N": 134217728},  # DRAM alone
    ),
    tiers={
        "small": (case("float32", N=1048576),),
        "core": (case("float32", N=16384), case("float32", N=16777216), case("float32", N=134217728)),
    },
)
