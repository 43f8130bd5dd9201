"""FlagGems' mm, tiles in Triton with a tuner of its own; on Hopper its variants by tensor descriptors.

Compute-bound: 2·M·N·K FLOPs. Prediction: behind cuBLAS by a tenth. In float32 it is left out: a first run of
M=17,N=19,K=23 on an H200 at 968ac8c4 (FlagGems 5.0.2) was compiling and tuning for more than two minutes.
"""

import flag_gems


def unsupported(dtype, M, N, K, layout="contiguous"):
    if dtype == "float32":
        return "FlagGems' tuner takes more than two minutes for a shape in float32"
    return "FlagGems' mm takes no matrix without elements" if 0 in (M, N, K) else None


def prepare(a, b):
    def run():
        return flag_gems.mm(a, b)

    return run
