"""cuda_block.cu takes packed weights and float32 biases, as cuda_fused.cu does."""

from .weights import prepare

__all__ = ["prepare"]
