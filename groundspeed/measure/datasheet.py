"""Peaks that no kernel can beat, from the vendors' data sheets: the referee's bound on what is possible.

Dense rates, without sparsity. Sources: NVIDIA H200, H100 and A100 Tensor Core GPU data sheets. float32 is the rate of
the CUDA cores: tensor cores in tf32 are another arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """Bytes/s of device memory and FLOP/s by dtype."""

    bandwidth: float
    flops: dict[str, float]


_HOPPER_SXM = {"float64": 67e12, "float32": 67e12, "float16": 989.4e12, "bfloat16": 989.4e12}

_PEAKS = {
    "NVIDIA H200": Peak(4.8e12, _HOPPER_SXM),
    "NVIDIA H100 80GB HBM3": Peak(3.35e12, _HOPPER_SXM),
    "NVIDIA A100-SXM4-80GB": Peak(
        2.039e12, {"float64": 19.5e12, "float32": 19.5e12, "float16": 312e12, "bfloat16": 312e12}
    ),
    "NVIDIA A100-SXM4-40GB": Peak(
        1.555e12, {"float64": 19.5e12, "float32": 19.5e12, "float16": 312e12, "bfloat16": 312e12}
    ),
}


def peak(device_name: str) -> Peak | None:
    """The peaks of a GPU by the name its driver gives, or None where no data sheet is on record."""
    return _PEAKS.get(device_name)
