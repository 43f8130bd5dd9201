"""Inputs of elementwise operators: a vector of normal values, in the layouts and with the values that check cases name.

Layouts: ``strided`` has a gap of one element between neighbours; ``offset`` is contiguous but starts one element into
its buffer, so that no address is a multiple of 16 bytes. ``values="special"`` sprinkles NaN, an infinity and zeros of
both signs.
"""

LAYOUTS = ("contiguous", "strided", "offset")
SPECIAL = (float("nan"), float("inf"), 0.0, -0.0)


def vector(generator, dtype, device, N, layout="contiguous", values="normal", spread=1.0, special=SPECIAL):
    """N values of N(0, spread²) in ``dtype``. Raises ValueError for a layout or values that are none of the above."""
    import torch

    if layout not in LAYOUTS or values not in ("normal", "special"):
        raise ValueError(f"unknown layout {layout!r} or values {values!r}")
    x = spread * torch.randn(N, generator=generator, dtype=dtype, device=device)
    if values == "special":
        for start, value in enumerate(special):
            x[start::7] = value
    if layout == "strided":
        return x.new_empty(2 * N)[::2].copy_(x)
    if layout == "offset":
        return x.new_empty(N + 1)[1:].copy_(x)
    return x
