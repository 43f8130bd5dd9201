"""Addition of two vectors, y = a + b. Memory-bound: one operation for three memory accesses, 0.083 FLOP/B in float32.

Tolerance: one rounding of the exact sum, by at most half a unit in the last place; rtol is a whole one, since
Triton's interpreter cuts bfloat16 off instead of rounding it. A sum is never denormal without being exact: atol is 0.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    a = vector(generator, dtype, device, N, layout, values)
    return {"a": data(a), "b": data(vector(generator, dtype, device, N, layout))}


def reference(a, b):
    return a + b


def flops(N, layout="contiguous", values="normal"):
    return N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=2 * N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=0.0),
        "float16": Tolerance(rtol=2.0**-10, atol=0.0),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=0.0),
    },
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
        {"N": 1048576},  # 12 MiB of float32 in all: held by the L2
        {"N": 16777216},
        {"N": 134217728},  # 1.5 GiB in all: DRAM alone
    ),
    tiers={
        "small": (case("float32", N=1048576),),
        "core": (case("float32", N=16384), case("float32", N=16777216), case("float16", N=134217728)),
    },
)
