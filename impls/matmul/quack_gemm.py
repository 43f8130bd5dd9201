"""QuACK's gemm in CuTe DSL, warp-specialised wgmma over TMA, in its default configuration for the device.

Compute-bound: 2·M·N·K FLOPs. Prediction: level with cuBLAS at 4096³ and beyond.
"""

from quack.gemm_interface import gemm

PACK = 8  # elements of 16 bits in the 16 bytes that TMA counts strides in


def unsupported(dtype, M, N, K, layout="contiguous"):
    if dtype == "float32":
        return "QuACK's gemm multiplies float32 as TF32"
    if layout == "strided":
        return "TMA takes no matrix with gaps between the elements of a row"
    if K % PACK or N % PACK or 0 in (M, N, K):
        return f"TMA wants rows of a multiple of {PACK} elements: N={N}, K={K}"
    return None


def prepare(a, b):
    def run():
        return gemm(a, b, tuned=False)

    return run
