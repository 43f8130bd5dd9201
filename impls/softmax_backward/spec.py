"""The backward pass of softmax over rows of [M, N], from grad_output and the output y that the forward pass saved.

    grad_x[i, j] = y[i, j] · (grad_output[i, j] - sum_k grad_output[i, k] · y[i, k]),

the product of grad_output with softmax's Jacobian diag(y) - y·yᵀ (Bridle, "Probabilistic interpretation of feedforward
classification network outputs", 1990). The operator is this formula for whatever y it is given. Memory-bound: two reads
and a write for 4 operations an element.

y is the softmax of N(0, 3²), rounded to the dtype; grad_output is N(0, 1), so the sum is of either sign and of the size
of a gradient where a row has a large element. Layouts: ``strided`` has a gap between neighbours; ``masked`` has every
second probability 0, as an attention mask leaves them.

Tolerance. float32: the sum is off by a few 2^-24 of its largest term, and the difference is rounded once more; both are
multiplied by y <= 1, so that 4·(|grad| + |sum|)·2^-24 = 1e-6 covers what cancels: atol; where nothing does, rtol 1e-5
is wide. Almost all of grad_x is of the size of y, 1/N, and smaller than atol in part: the norm, 1e-5, is what a missing
sum meets there. In 16 bits, with a unit roundoff u (2^-11 float16, 2^-8 bfloat16), the output is rounded once; rtol
allows twice that, since Triton's interpreter cuts bfloat16 off. PyTorch's own kernel for CUDA rounds grad_output · y
too, before the sum is taken off it: u·|grad_output·y|, at most 4·u, is absolute where the two cancel, and on an H200 it
was 27 times what rtol alone allows. atol = 4·u admits it. In norm it is 1.4·u at most among 500 draws emulated in
float32; norm = 2·u admits that and refuses a missing sum.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided

LAYOUTS = ("contiguous", "strided", "masked")


def inputs(generator: Any, dtype: Any, device: Any, M: int, N: int, layout: str = "contiguous") -> dict[str, Input]:
    """grad_output [M, N] of N(0, 1), and y [M, N], the softmax of N(0, 3²)."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"softmax_backward: unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")
    logits = 3.0 * torch.randn((M, N), generator=generator, device=device, dtype=torch.float32)
    if layout == "masked":
        logits[:, 1::2] = float("-inf")
    grad_output = torch.randn((M, N), generator=generator, device=device, dtype=torch.float32).to(dtype)
    y = torch.softmax(logits, dim=-1).to(dtype)
    if layout == "strided":
        grad_output, y = strided(grad_output), strided(y)
    return {"grad_output": data(grad_output), "y": data(y)}


def reference(grad_output: Any, y: Any) -> Any:
    return y * (grad_output - (grad_output * y).sum(dim=-1, keepdim=True))


def flops(M: int, N: int, layout: str = "contiguous") -> int:
    """A product and a sum, a difference and a product: 4 an element."""
    return 4 * M * N


def traffic(itemsize: int, M: int, N: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=2 * M * N * itemsize, write=M * N * itemsize)


def rows(M: int, N: int, layout: str = "contiguous") -> int:
    return M


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=rows,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=1e-6),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-9),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2.0**-6),
    },
    check_shapes=(
        {"M": 1, "N": 1},
        {"M": 0, "N": 8},
        {"M": 13, "N": 1009},
        {"M": 129, "N": 200},
        {"M": 3, "N": 4096, "layout": "strided"},
        {"M": 5, "N": 1000, "layout": "masked"},
        {"M": 2, "N": 12296},
        {"M": 2, "N": 32776},
    ),
    bench_shapes=(
        {"M": 4096, "N": 256},
        {"M": 4096, "N": 1024},
        {"M": 4096, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 512, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=256),),
        "core": (case("float32", M=8192, N=8192), case("bfloat16", M=8192, N=8192)),
    },
)
