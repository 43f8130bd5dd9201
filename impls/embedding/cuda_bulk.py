"""Which rows bulk copies can move: whole 16-byte packs, of any length, on a GPU that has them."""

from __future__ import annotations

from .._cuda.rings import ITEM_BYTES, PACK, row_unsupported


def unsupported(dtype: str, V: int, N: int, D: int, layout: str = "contiguous") -> str | None:
    lanes = PACK // ITEM_BYTES[dtype]
    piece = D if D % lanes else lanes  # a row of whole packs is copied in pieces: no length is too much
    return row_unsupported(piece, ITEM_BYTES[dtype])
