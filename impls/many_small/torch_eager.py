"""Two ATen kernels a fold, a subtraction and an absolute value, as a user calls them.

Bound by launches: the host pays for dispatch, allocation and launch of every kernel, and the device is done with one
before the next arrives. Each reads and writes the vector, which stays in the L2. Prediction: 4 to 6 µs of call time
a kernel.

Reached on nvidia-h200 at 968ac8c4: 66.8 µs for float32 N=65536,folds=16, 7.85 GB/s, 0.18 % of the memory ceiling
(unstable).
"""

import torch


def many_small(x, points):
    """y ← |y - point| for each of the Python floats in turn, beginning with x [N]; there is at least one point."""
    for point in points:
        x = torch.abs(x - point)
    return x


def prepare(x, b):
    points = tuple(b.tolist())

    def run():
        return many_small(x, points)

    return run
