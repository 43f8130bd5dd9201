"""QuACK's layer_norm in CuTe DSL: a row over threads, a block or a cluster of blocks, read once by 16-byte copies.

Memory-bound: 2·M·N elements. Weight and bias are widened to float32 beforehand, the only dtype it takes. Prediction:
near the copy ceiling at every length.

Reached on nvidia-h200 at f9f505a9: 164 µs for float32 M=2048,N=32768, 3.27 TB/s, 77 % of the memory ceiling, 1.65 times
as fast as torch_eager.
"""

from quack.rmsnorm import layernorm_fwd

from .._quack.rows import refused

EPSILON = 1e-5


def unsupported(dtype, M, N, layout="contiguous"):
    return refused(dtype, M, N)


def prepare(x, weight, bias):
    scale, shift = weight.float(), bias.float()

    def run():
        return layernorm_fwd(x.contiguous(), scale, shift, EPSILON)

    return run
