"""cuda_vec.cu takes the direction as a boolean."""

from .direction import prepare

__all__ = ["prepare"]
