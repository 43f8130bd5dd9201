"""A product planned once by nvmath-python on cuBLASLt and executed many times, on torch's memory and current stream."""

from nvmath.linalg.advanced import Matmul


def planned(a, b, **plan):
    """A call that returns a fresh a·b from what a [M, K] and b [K, N] hold by then; ``plan`` may name an epilogue."""
    product = Matmul(a, b)
    product.plan(**plan)
    return product.execute


def unsupported(dtype, layout="contiguous", **sizes):
    if layout == "strided":
        return "cuBLASLt takes no matrix with gaps between the elements of a row"
    return "cuBLASLt takes no matrix without elements" if 0 in sizes.values() else None
