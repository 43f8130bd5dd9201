"""(a + b) · c of three vectors, the roofline example of the sources: 0.125 FLOP/B in float32.

Memory-bound: 2 operations for 4 memory accesses. Tolerance: two roundings, of the sum and of the product, each at most
half a unit in the last place (an implementation that computes in float32 rounds a 16-bit output once). rtol allows
twice that, since Triton's interpreter cuts bfloat16 off; a product may be denormal in float16, where the spacing is
2^-24.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    a = vector(generator, dtype, device, N, layout, values)
    b, c = (vector(generator, dtype, device, N, layout) for _ in range(2))
    return {"a": data(a), "b": data(b), "c": data(c)}


def reference(a, b, c):
    return (a + b) * c


def flops(N, layout="contiguous", values="normal"):
    return 2 * N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=3 * N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-22, atol=0.0),
        "float16": Tolerance(rtol=2.0**-9, atol=2.0**-23),
        "bfloat16": Tolerance(rtol=2.0**-6, atol=0.0),
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
        {"N": 1048576},  # held by the L2
        {"N": 16777216},  # 64 MiB of float32 each way
        {"N": 134217728},  # DRAM alone
    ),
    tiers={
        "small": (case("float32", N=1048576),),
        "core": (case("float32", N=16384), case("float32", N=16777216), case("float16", N=134217728)),
    },
    ladders={"vertical fusion": ("torch_eager", "torch_compile", "cuda_vec")},
)
