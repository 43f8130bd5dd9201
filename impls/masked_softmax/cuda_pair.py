"""Which rows, and rows of the mask, a pair of blocks can copy ahead and hold."""

from __future__ import annotations

from .._cuda.pairs import row_unsupported


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    return row_unsupported(N, 1, "a row of the mask")
