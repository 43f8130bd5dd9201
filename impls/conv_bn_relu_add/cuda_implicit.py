"""cuda_implicit.cu takes packed weights, and batch normalisation as a scale and a shift."""

from .._cuda.conv_weights import packed
from .fold import scale_and_shift


def prepare(ops, x, filters, gamma, beta, mean, variance, residual):
    weights = packed(filters)
    scale, shift = scale_and_shift(gamma, beta, mean, variance)

    def run():
        return ops.run(x, weights, scale, shift, residual)

    return run
