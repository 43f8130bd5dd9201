"""GELU with the error function, y = x/2 · (1 + erf(x/√2)), elementwise (not the tanh approximation).

Memory-bound, but not by far: some 20 instructions an element, which in 16 bits is close to what a GPU can issue while
an element is moved. FLOPs count the error function as one.

Tolerance: 1 + erf(x/√2) cancels for negative x, so that an erf one unit in the last place short of -1 at x = -17, the
least that N(0, 3²) gives, is off by 17/2 · 2^-23 = 1.0e-6; atol is twice that. PyTorch's eager on a CPU is 1.7e-4 off
in the norm over inputs below -3 alone, so no case demands the tail; ours use erfc and are within 5e-6 there. A 16-bit
output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off. At -inf the formula itself
is NaN and implementations differ at +inf: the special values are NaN and zeros of both signs.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    special = (float("nan"), 0.0, -0.0)
    return {"x": data(vector(generator, dtype, device, N, layout, values, spread=3.0, special=special))}


def reference(x):
    import torch

    return torch.nn.functional.gelu(x)


def flops(N, layout="contiguous", values="normal"):
    return 5 * N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=2e-6),
        "float16": Tolerance(rtol=2.0**-10, atol=2e-6),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2e-6),
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
)
