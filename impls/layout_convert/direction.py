"""Which way an order of dimensions goes: it is a weight, so it is read outside the timed region."""

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)


def is_to_nhwc(order):
    """True for (0, 2, 3, 1), False for (0, 3, 1, 2). Raises ValueError for any other order."""
    dimensions = tuple(int(dimension) for dimension in order.tolist())
    if dimensions not in (TO_NHWC, TO_NCHW):
        raise ValueError(f"layout_convert: expected the order {TO_NHWC} or {TO_NCHW}, got {dimensions}")
    return dimensions == TO_NHWC


def matrices(shape, to_nhwc):
    """(images, rows, columns) of the matrices to transpose, and the shape of the output, for an input's shape."""
    if to_nhwc:
        images, channels, height, width = shape
        return (images, channels, height * width), (images, height, width, channels)
    images, height, width, channels = shape
    return (images, height * width, channels), (images, channels, height, width)


def prepare(ops, x, order):
    """``prepare`` of the CUDA kernels, whose ``run`` takes x and the direction."""
    to_nhwc = is_to_nhwc(order)

    def run():
        return ops.run(x, to_nhwc)

    return run
