"""cuda_cluster.cu takes the epsilon as a number, and rows that fit into the registers of one cluster of blocks."""

from .._cuda.clusters import row_unsupported
from .torch_eager import EPSILON


def unsupported(dtype, M, N, layout="contiguous"):
    return row_unsupported(N)


def prepare(ops, x, weight, bias):
    def run():
        return ops.run(x, weight, bias, EPSILON)

    return run
