"""A tile of 2048 elements a block in cuda.tile: the compiler chooses threads, vectors and whether TMA moves it.

Memory-bound: N elements read, N written. Prediction: level with triton_block.
"""

import cuda.tile as ct

from .._cutile.launch import elementwise


@ct.kernel
def relu(x, y, TILE: ct.Constant[int]):
    block = ct.bid(0)
    tile = ct.load(x, (block,), (TILE,))
    wide = tile.astype(ct.float32)
    ct.store(y, (block,), ct.where(wide < 0.0, 0.0, wide).astype(y.dtype))  # NaN is not below zero


def prepare(x):
    def run():
        return elementwise(relu, x)

    return run
