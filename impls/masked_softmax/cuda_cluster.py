"""Which rows fit into the registers of one cluster of blocks."""

from __future__ import annotations

from .._cuda.clusters import row_unsupported


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    return row_unsupported(N)
