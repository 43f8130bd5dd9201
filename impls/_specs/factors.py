"""Factors of matrix products, scaled so that an element of a product is N(0, 1) whatever the length of its sum.

Layout ``strided`` leaves a gap of one element between neighbours, ``offset`` starts one element into its buffer, so
that no address is a multiple of 16 bytes.
"""

import math

LAYOUTS = ("contiguous", "strided", "offset")


def activations(generator, dtype, device, rows, columns, layout="contiguous"):
    """A left factor [rows, columns] of N(0, 1). Raises ValueError for a layout that is none of the above."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")
    x = torch.randn((rows, columns), generator=generator, device=device, dtype=torch.float32).to(dtype)
    if layout == "strided":
        return x.new_empty((rows, 2 * columns))[:, ::2].copy_(x)
    if layout == "offset":
        return x.new_empty(rows * columns + 1)[1:].view(rows, columns).copy_(x)
    return x


def weights(generator, dtype, device, rows, columns):
    """A right factor [rows, columns] of N(0, 1/rows)."""
    import torch

    drawn = torch.randn((rows, columns), generator=generator, device=device, dtype=torch.float32)
    return (drawn / math.sqrt(max(rows, 1))).to(dtype)
