"""cuda_mapped.cu is told the device, which an x in host memory does not name."""

from .place import prepare

__all__ = ["prepare"]
