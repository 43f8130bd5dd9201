"""Where a pair of blocks can share a row: its length, whole 16-byte packs, a GPU with clusters and the memory."""

from __future__ import annotations

from .clusters import row_unsupported as clusters_unsupported
from .rings import ITEM_BYTES, PACK

__all__ = ["ITEM_BYTES", "row_unsupported"]

SHORTEST_ROW = 16385  # row_pair.cuh's kShortestPairRow: elements
LONGEST_ROW = 32768  # row_pair.cuh's kLongestPairRow
SHARED_BYTES = 192 * 1024 + 1024  # what layer_norm/cuda_pair.cu has in float32, the most, and its static memory


def row_unsupported(length: int, item_bytes: int, row_name: str = "a row") -> str | None:
    """``item_bytes`` and ``row_name`` of the tensor with the smallest elements."""
    if length < SHORTEST_ROW:
        return f"a row of {length} elements needs no pair of blocks (a pair is for {SHORTEST_ROW} and more)"
    if length > LONGEST_ROW:
        return f"a row of {length} elements does not fit in the registers of a pair of blocks (at most {LONGEST_ROW})"
    row = length * item_bytes
    if row % PACK:
        return f"{row_name} of {row} bytes is not whole packs of {PACK}, which are copied ahead"
    return clusters_unsupported(length) or _lacks_memory()


def _lacks_memory() -> str | None:
    import torch  # not at the top: asking about shapes must not cost seconds

    if not torch.cuda.is_available():
        return None
    most = torch.cuda.get_device_properties().shared_memory_per_block_optin
    if most < SHARED_BYTES:
        return f"a block has {most} bytes of shared memory at most on this GPU, and rows ahead need {SHARED_BYTES}"
    return None
