"""A block a row, compiled by Numba from Python: the row is read three times, for maximum, sum and output.

Memory-bound: 2·M·N elements have to move; the second and third read find short rows in L1 or L2, and every element
costs two exponentials. Prediction: behind cuda_block.
"""

import math

import torch
from numba import cuda, float32

from .._numba.launch import rows, unsupported
from .._numba.reduce import block_max, block_sum

__all__ = ["prepare", "unsupported"]


@cuda.jit
def softmax(x, y):
    row, length = cuda.blockIdx.x, x.shape[1]
    largest = float32(-math.inf)
    for i in range(cuda.threadIdx.x, length, cuda.blockDim.x):
        largest = max(largest, float32(x[row, i]))
    largest = block_max(largest)
    total = float32(0.0)
    for i in range(cuda.threadIdx.x, length, cuda.blockDim.x):
        total += math.exp(float32(x[row, i]) - largest)
    total = block_sum(total)
    for i in range(cuda.threadIdx.x, length, cuda.blockDim.x):
        y[row, i] = math.exp(float32(x[row, i]) - largest) / total


def prepare(x):
    def run():
        return rows(softmax, x, torch.empty(x.shape, dtype=x.dtype, device=x.device))

    return run
