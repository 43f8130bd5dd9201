"""How a vector is cut for the pipeline, the same for every back end.

Each copy costs the device some microseconds beside its bytes, so pieces are few; what is left unhidden at the end is
the ReLU of the last one, so there is more than one. Two streams are enough: while one copies the other computes, and a
third would only wait for the same link.
"""

STREAMS = 2
MOST_PIECES = 8
LEAST_BYTES = 1 << 20
ALIGNMENT = 128  # elements: a piece begins where vector loads can begin, if the vector itself does


def pieces(size, itemsize):
    """Bounds (first, last + 1) of at most MOST_PIECES pieces of ``size`` elements, in order; none for no elements."""
    least = max(LEAST_BYTES // itemsize, -(-size // MOST_PIECES))
    step = -(-least // ALIGNMENT) * ALIGNMENT
    return [(first, min(first + step, size)) for first in range(0, size, step)]
