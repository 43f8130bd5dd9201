"""The formula through Inductor: a product, its sum along the row and what follows from it in one kernel.

Memory-bound: 3·M·N elements where Inductor holds a row on chip, 5·M·N where it splits the row into a loop and reads it
again, partly from L2. Predicted: level with eager.

Reached on nvidia-h200 at 968ac8c4: 179 µs for float32 M=8192,N=8192, 4.49 TB/s, 102 % of the memory ceiling, 2.06 times
as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def softmax_backward(grad_output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    grad, wide = grad_output.float(), y.float()
    return (wide * (grad - (grad * wide).sum(dim=-1, keepdim=True))).to(y.dtype)


def prepare(grad_output: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
    compiled = torch.compile(softmax_backward, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")

    def run() -> torch.Tensor:
        return compiled(grad_output, y)

    run()
    return run
