"""Into how many chunks the positions of a cache are cut, so that few long sequences fill a GPU too.

Lengths are data on the device: the cut is made from the capacity S, and chunks behind a sequence's length end at once.
"""

LEAST = 256  # positions a chunk: a shorter one is over before its loads have found their pace
PROGRAMS = 4096  # about 30 a multiprocessor of an H200: many sequences end early, and the rest must balance


def chunk_length(pairs, capacity):
    """Positions a chunk, a power of two, for ``pairs`` of a sequence and a head of the caches."""
    wanted = -(-pairs * capacity // PROGRAMS)
    return max(LEAST, 1 << max(wanted - 1, 0).bit_length())
