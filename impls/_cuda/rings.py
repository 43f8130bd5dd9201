"""Which rows can come through a ring of bulk copies: whole 16-byte packs, not too long, and a GPU that has them."""

from __future__ import annotations

PACK = 16  # bytes: cp.async.bulk moves multiples of it
MOST_BYTES = 128 * 1024  # row_ring.cuh: of a row
LONGEST_HELD = 32768  # softmax_ring.cuh's kLongestSoftmaxRow: elements
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def held_unsupported(length: int, item_bytes: int) -> str | None:
    """Of a row that goes into the registers of a block besides."""
    if length > LONGEST_HELD:
        return f"a row of {length} elements does not fit in the registers of one block (at most {LONGEST_HELD})"
    return row_unsupported(length, item_bytes)


def row_unsupported(length: int, item_bytes: int) -> str | None:
    row = length * item_bytes
    if row % PACK:
        return f"a row of {row} bytes is not whole packs of {PACK}, which bulk copies move"
    if row > MOST_BYTES:
        return f"a row of {row} bytes is longer than a ring in shared memory is for (at most {MOST_BYTES})"
    import torch  # not at the top: asking about shapes must not cost seconds

    if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] < 9:
        return "bulk copies exist from compute capability 9.0 on"
    return None
