"""cuda_fused.cu takes one projection for queries, keys and values, and an MLP in parts; it is built on wgmma, for two
head dimensions.
"""

import torch

from .packed import packed_projections

TILE = 128  # rows, and columns, of the smaller tile of a product
MLP_PARTS = 4
MULTIPROCESSORS = 132  # of an H200: where there is no GPU to ask


def unsupported(dtype, B, S, D, H, F, layout="contiguous"):
    if D // H not in (64, 128):
        return "the wgmma kernel of attention is built for head dimensions 64 and 128"
    if F % 8:
        return "the tensor memory accelerator needs rows in multiples of 16 bytes: F in multiples of 8"
    if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] != 9:
        return "wgmma exists on compute capability 9.0 only"
    return None


def mlp_parts(rows, width, inner, multiprocessors):
    """1, or MLP_PARTS where the tiles of a product with D columns are less than half the multiprocessors."""
    tiles = -(-rows // TILE) * -(-width // TILE)
    return MLP_PARTS if 2 * tiles < multiprocessors and inner % (8 * MLP_PARTS) == 0 else 1


def packed_mlp(p, parts):
    """up [parts, D, F / parts], its bias, down [parts, F / parts, D], its bias above zeros [parts, D]."""
    up = p["up"].unflatten(1, (parts, -1)).movedim(1, 0).contiguous()
    down = p["down"].unflatten(0, (parts, -1)).contiguous()
    down_bias = p["down_bias"].new_zeros((parts, p["down_bias"].shape[0]))
    down_bias[0] = p["down_bias"]
    return up, p["up_bias"], down, down_bias


def prepare(ops, x, heads, **p):
    count = int(heads)
    properties = torch.cuda.get_device_properties(x.device) if x.is_cuda else None
    multiprocessors = properties.multi_processor_count if properties else MULTIPROCESSORS
    parts = mlp_parts(x.shape[0] * x.shape[1], x.shape[2], p["up"].shape[1], multiprocessors)
    norm1, norm2 = ((p[f"{name}_weight"], p[f"{name}_bias"]) for name in ("norm1", "norm2"))
    output = (p["output"], p["output_bias"])
    parameters = (*norm1, *packed_projections(p), *output, *norm2, *packed_mlp(p, parts))

    def run():
        return ops.run(x, *parameters, count)

    return run
