"""cuda_fused.cu takes packed weights and float32 biases."""

from .weights import prepare

__all__ = ["prepare"]
