"""Which rows fit into the registers of one block."""

from __future__ import annotations

LONGEST_ROW = 32768


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    if N > LONGEST_ROW:
        return f"a row of {N} elements does not fit in one block's registers (at most {LONGEST_ROW})"
    return None
