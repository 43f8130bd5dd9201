"""Which rows the ring can bring and the registers of one block can hold."""

from __future__ import annotations

from .._cuda.rings import ITEM_BYTES, held_unsupported


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    return held_unsupported(N, ITEM_BYTES[dtype])
