"""Where Hopper's warpgroup products apply: 16-bit types, rows the tensor memory accelerator can describe, an sm_90."""

from __future__ import annotations


def unsupported(dtype: str, M: int, N: int, K: int, layout: str = "contiguous") -> str | None:
    if dtype == "float32":
        return "tensor cores would lower float32 to tf32"
    if K % 8 or N % 8:
        return "the tensor memory accelerator needs rows in multiples of 16 bytes: K and N in multiples of 8"
    if K == 0:
        return "the tensor memory accelerator cannot describe an empty matrix"
    import torch  # not at the top: asking about shapes must not cost seconds

    if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] != 9:
        return "wgmma exists on compute capability 9.0 only"
    return None
