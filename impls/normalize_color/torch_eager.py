"""The naive two steps, normalise and then multiply by the colour matrix.

Bound by memory, three times over: the difference, the quotient and the product each read and write the whole batch,
18 elements a pixel where 6 must move.

Reached on nvidia-h200 at 968ac8c4: 17.8 ms for float32 N=1024,H=512,W=512, 362 GB/s, 8.5 % of the memory ceiling.
"""


def normalize_color(x, mean, std, M):
    """((x - mean) / std) · M over the last dimension of x [N, H, W, 3]."""
    z = (x - mean) / std
    return z @ M


def prepare(x, mean, std, M):
    def run():
        return normalize_color(x, mean, std, M)

    return run
