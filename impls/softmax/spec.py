"""Row-wise softmax, y[i, j] = exp(x[i, j] - max_j x[i, j]) / sum_j exp(x[i, j] - max_j x[i, j]), over [M, N].

Memory-bound: a row read once and written once is 2·itemsize bytes an element for about 5 FLOPs (maximum, subtraction,
exponential counted as one, sum, division), an intensity of 0.6 FLOP/B in float32, far below any GPU's ridge.

Inputs are logits drawn from N(0, 3²): rows of 8192 then span about 24, so that a softmax over a wrong maximum or a
wrong row is far off. Layouts of check shapes: ``strided`` (a gap between neighbours), ``masked`` (every second element
-inf, as an attention mask leaves them), ``large`` (every row shifted by 10000: without the maximum subtracted, exp
overflows).

Tolerances. Arithmetic is float32: with d = max - x, exp carries a relative error of about (1 + d)·2^-23 from rounding
its argument, 3e-6 at d = 24, and the sum adds a few 2^-24; rtol 1e-5 for float32 leaves a factor of 3, and atol 1e-10
admits only results that are nothing beside 1/N. A 16-bit output is rounded once, by at most 2^-11 of it in float16 and
2^-8 in bfloat16; rtol allows twice that, one unit in the last place, since a float32 result next to a tie may fall to
either side, and since Triton's interpreter cuts bfloat16 off instead of rounding it. Float16 below 2^-14 is denormal
with a spacing of 2^-24: its atol.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided


def inputs(generator: Any, dtype: Any, device: Any, M: int, N: int, layout: str = "contiguous") -> dict[str, Input]:
    """One [M, N] tensor of logits in the named layout."""
    import torch

    x = 3.0 * torch.randn((M, N), generator=generator, device=device, dtype=torch.float32)
    if layout == "masked":
        x[:, 1::2] = float("-inf")
    elif layout == "large":
        x += 10000.0
    x = x.to(dtype)
    if layout == "strided":
        x = strided(x)
    elif layout not in ("contiguous", "masked", "large"):
        raise ValueError(f"softmax: unknown layout {layout!r}, expected contiguous, strided, masked or large")
    return {"x": data(x)}


def reference(x: Any) -> Any:
    """The float64 softmax of the last dimension."""
    import torch

    return torch.softmax(x, dim=-1)


def flops(M: int, N: int, layout: str = "contiguous") -> int:
    """Maximum, subtraction, exponential, sum and division: 5 an element."""
    return 5 * M * N


def traffic(itemsize: int, M: int, N: int, layout: str = "contiguous") -> Traffic:
    """x read once, y written once."""
    return Traffic(read=M * N * itemsize, write=M * N * itemsize)


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
        "float32": Tolerance(rtol=1e-5, atol=1e-10),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1e-10),
    },
    check_shapes=(
        {"M": 1, "N": 1},
        {"M": 0, "N": 8},
        {"M": 7, "N": 1000},
        {"M": 5, "N": 12345},
        {"M": 13, "N": 1009},
        {"M": 129, "N": 257},
        {"M": 3, "N": 4096},
        {"M": 3, "N": 4096, "layout": "strided"},
        {"M": 5, "N": 1000, "layout": "masked"},
        {"M": 6, "N": 2048, "layout": "large"},
        {"M": 2, "N": 32768},
        {"M": 2, "N": 32769},
    ),
    bench_shapes=(
        {"M": 4096, "N": 256},
        {"M": 4096, "N": 1024},
        {"M": 4096, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 512, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=256), case("float32", M=4096, N=1024)),
        "core": (
            case("float32", M=4096, N=1024),
            case("float16", M=8192, N=8192),
            case("float32", M=8192, N=8192),
            case("bfloat16", M=512, N=32768),
        ),
    },
    ladders={"rows": ("torch_eager", "cuda_warp", "cuda_block", "cuda_pipeline")},
)
