"""Which rows, and rows of the mask, the ring can bring and the registers of one block can hold."""

from __future__ import annotations

from .._cuda.rings import ITEM_BYTES, held_unsupported, row_unsupported


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    return row_unsupported(N, 1) or held_unsupported(N, ITEM_BYTES[dtype])
