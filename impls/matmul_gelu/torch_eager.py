"""Two library calls, a product with its bias and a kernel for the activation.

Compute-bound product, 2·M·N·K FLOPs with the bias in its epilogue; then a memory-bound kernel reads and writes the M·N
elements again. In 16 bits the sums are rounded between the two.

Reached on nvidia-h200 at 968ac8c4: 203 µs for bfloat16 M=4096,N=4096,K=4096, 678 TFLOP/s, 87 % of the compute ceiling.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def matmul_gelu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.addmm(bias, a, b))


def prepare(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        return matmul_gelu(a, b, bias)

    return run
