"""QuACK's layer_norm in CuTe DSL: a row over threads, a block or a cluster of blocks, read once by 16-byte copies.

Memory-bound: 2·M·N elements. Weight and bias are widened to float32 beforehand, the only dtype it takes. Prediction:
near the copy ceiling at every length.
"""

from quack.rmsnorm import layernorm_fwd

EPSILON = 1e-5


def prepare(x, weight, bias):
    scale, shift = weight.float(), bias.float()

    def run():
        return layernorm_fwd(x.contiguous(), scale, shift, EPSILON)

    return run
