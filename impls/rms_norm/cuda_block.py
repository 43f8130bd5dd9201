"""cuda_block.cu takes the epsilon as a number."""

from .torch_eager import EPSILON


def prepare(ops, x, weight):
    def run():
        return ops.run(x, weight, EPSILON)

    return run
