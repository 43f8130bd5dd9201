"""cuda_flash.cu takes causal as a boolean; its 16-bit kernels are built for two head dimensions."""

from .mask import with_flag as prepare

__all__ = ["prepare", "unsupported"]


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if dtype != "float32" and D not in (64, 128):
        return "the mma.sync kernels are built for head dimensions 64 and 128"
    if D > 128:
        return "the float32 kernels hold head dimensions up to 128"
    return None
