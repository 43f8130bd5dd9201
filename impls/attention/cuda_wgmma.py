"""cuda_wgmma.cu takes causal as a boolean, 16-bit types, two head dimensions and an sm_90."""

from .mask import with_flag as prepare

__all__ = ["prepare", "unsupported"]


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if dtype == "float32":
        return "tensor cores would lower float32 to tf32"
    if D not in (64, 128):
        return "the wgmma kernel is built for head dimensions 64 and 128"
    import torch  # not at the top: asking about shapes must not cost seconds

    if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] != 9:
        return "wgmma exists on compute capability 9.0 only"
    return None
