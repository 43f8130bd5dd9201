"""Which rows the ring can bring and the registers of one block can hold."""

from __future__ import annotations

from .._cuda.rings import ITEM_BYTES, row_unsupported

LONGEST_ROW = 32768  # softmax_ring.cuh's kLongestSoftmaxRow


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    if N > LONGEST_ROW:
        return f"a row of {N} elements does not fit in the registers of one block (at most {LONGEST_ROW})"
    return row_unsupported(N, ITEM_BYTES[dtype])
