"""Inputs of row-wise operators: a matrix of normal values in the layouts that check cases name.

``contiguous``; ``strided``, a gap of one element between neighbours; ``large``, 400 times the values, whose squares
overflow float16; ``shifted``, 64 added, where E[x²] - E[x]² cancels in float32.
"""

SCALE = {"large": 400.0}
SHIFT = {"shifted": 64.0}
LAYOUTS = ("contiguous", "strided", "large", "shifted")


def matrix(generator, dtype, device, M, N, layout="contiguous"):
    """M × N values of N(0, 1) in ``dtype``, scaled and shifted as the layout says. Raises ValueError for another."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")
    x = torch.randn((M, N), generator=generator, dtype=torch.float32, device=device)
    x = (SCALE.get(layout, 1.0) * x + SHIFT.get(layout, 0.0)).to(dtype)
    if layout == "strided":
        return x.new_empty((M, 2 * N))[:, ::2].copy_(x)
    return x
