"""Two cupy.matmul calls, each of which hands its product to cuBLAS.

Compute-bound: 2·M·N·K FLOPs a launch. Predicted: level with eager on the device.

Reached on nvidia-h200 at 968ac8c4: 121 µs for float32 M=1024,N=1024,K=1024, 35.4 TFLOP/s, 69 % of the compute ceiling,
1.00 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._cupy.dtypes import unsupported
from .._cupy.products import matmul

__all__ = ["prepare", "unsupported"]


def prepare(a1: Any, b1: Any, a2: Any, b2: Any) -> Callable[[], tuple[Any, Any]]:
    def run() -> tuple[Any, Any]:
        return matmul(a1, b1), matmul(a2, b2)

    return run
