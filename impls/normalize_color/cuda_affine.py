"""cuda_affine.cu takes folded weights, which stay for many calls: they are folded here, outside the timed region."""

from .affine import prepare_folded as prepare

__all__ = ["prepare"]
