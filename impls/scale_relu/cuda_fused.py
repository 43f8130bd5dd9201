"""cuda_fused.cu takes the scale as a number."""

from .factor import prepare

__all__ = ["prepare"]
