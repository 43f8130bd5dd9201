"""Which dtypes tensor cores multiply without lowering them."""

from __future__ import annotations


def unsupported(dtype: str, M: int, N: int, K: int, layout: str = "contiguous") -> str | None:
    return "tensor cores would lower float32 to tf32" if dtype == "float32" else None
