"""Which rows QuACK's reductions take: they copy them to shared memory by cp.async, 4, 8 or 16 bytes at a time."""


def refused(dtype, rows, length):
    """Why QuACK cannot copy rows of this length, or None; where there is no row it copies none.

    Its vector is what divides both the row and 16 bytes: one element where the length is odd.
    """
    if rows and length % 2 and dtype != "float32":
        return "QuACK copies a row by cp.async, of 4 bytes at least: no odd number of elements of 16 bits"
    return None
