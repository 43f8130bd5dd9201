"""QuACK's rms_norm in CuTe DSL: a row over threads, a block or a cluster of blocks, read once by 16-byte copies.

Memory-bound: 2·M·N elements. Prediction: near the copy ceiling at every length, before triton_row at 32768.
"""

from quack.rmsnorm import rmsnorm_fwd

EPSILON = 1e-6


def prepare(x, weight):
    def run():
        y, *_ = rmsnorm_fwd(x.contiguous(), weight, eps=EPSILON)
        return y

    return run
