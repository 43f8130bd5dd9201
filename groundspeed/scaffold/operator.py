"""The skeleton of an operator: a spec of one vector, and the baseline beside it."""

from __future__ import annotations

from groundspeed.scaffold.implementation import implementation_text

SPEC = '''"""The function in one sentence, and what bounds it: memory or arithmetic.

Where the tolerance comes from: how many roundings lie between an honest implementation and the reference.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    # groundspeed new: draw the operator's inputs, each marked data(...) or weight(...), then delete this line
    return {"x": data(torch.randn(N, generator=generator, dtype=dtype, device=device))}


def reference(x):
    # groundspeed new: return the right answer, computed in float64 as the inputs are here, then delete this line
    return x


def flops(N):
    # groundspeed new: count the operations, and in traffic() the bytes, then delete this line
    return N


def traffic(itemsize, N):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=0.0),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=0.0),
    },
    # groundspeed new: choose shapes where kernels go wrong, and the ones to be reported, then delete this line
    check_shapes=({"N": 0}, {"N": 1}, {"N": 12345}),
    bench_shapes=({"N": 16384}, {"N": 16777216}),
    tiers={
        "small": (case("float32", N=16384),),
        "core": (case("float32", N=16384), case("float32", N=16777216)),
    },
)
'''
_INPUTS = ("x",)
_IDEA = "The operator as a user of PyTorch writes it: what all others are compared with."


def operator_files(operator: str) -> dict[str, str]:
    """The files of a new operator's folder, by name."""
    return {"spec.py": SPEC, "torch_eager.py": implementation_text(operator, "torch_eager", _INPUTS, _IDEA)}
