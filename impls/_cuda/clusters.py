"""Where a cluster of blocks can hold a row: its length, and a GPU that has clusters."""

from __future__ import annotations

LONGEST_ROW = 65536  # row_cluster.cuh's kLongestClusterRow


def row_unsupported(length: int) -> str | None:
    if length > LONGEST_ROW:
        return f"a row of {length} elements does not fit in the registers of one cluster (at most {LONGEST_ROW})"
    import torch  # not at the top: asking about shapes must not cost seconds

    if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] < 9:
        return "clusters of blocks exist from compute capability 9.0 on"
    return None
