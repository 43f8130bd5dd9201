"""A kernel that torch.compile (Inductor) generates from the one-line softmax, specialised to the shape.

Memory-bound, 2·M·N·itemsize bytes as long as Inductor keeps a row on chip (a persistent reduction); for rows that it
splits into a loop x is read again, 3·M·N·itemsize bytes. Predicted: level with eager on large rows.

Reached on nvidia-h200 at 968ac8c4: 131 µs for float32 M=8192,N=8192, 4.08 TB/s, 95 % of the memory ceiling, 2.10 times
as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def prepare(x: torch.Tensor) -> Callable[[], torch.Tensor]:
    compiled = torch.compile(softmax, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")

    def run() -> torch.Tensor:
        return compiled(x)

    run()
    return run
