"""Faster than the data sheet: a time that no kernel doing the work could have."""

from __future__ import annotations


def impossible(
    read: int, written: int, l2_bytes: int, flops: int, ns: float, peak_bytes: float, peak_flops: float
) -> str:
    """Why a time cannot be true, or an empty string.

    ``read`` and ``written`` in bytes, ``peak_bytes`` in bytes/s, ``peak_flops`` in FLOP/s (0 where not known). Only
    bytes that must cross DRAM count: reads, and writes beyond the L2, which may still hold the rest when the kernel
    ends. Under four times the L2 bandwidth says nothing.
    """
    seconds = ns * 1e-9
    must_cross = read + max(0, written - l2_bytes)
    if peak_bytes and read + written > 4 * l2_bytes and must_cross > peak_bytes * seconds:
        return f"{must_cross / seconds / 1e12:.2f} TB/s, the datasheet's peak is {peak_bytes / 1e12:.2f}"
    if peak_flops and flops > peak_flops * seconds:
        return f"{flops / seconds / 1e12:.1f} TFLOP/s, the datasheet's peak is {peak_flops / 1e12:.1f}"
    return ""
