"""cuDNN's fused attention through PyTorch, the mask as a bias, an engine built for the GPU and the shape.

Memory-bound: B·S positions of both caches are read whatever the lengths, and G·S biases a head, which are made in the
call. Predicted: ahead of memory-efficient attention, behind the split kernels.
"""

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, S, D, **shape):
    if dtype == "float32":
        return "cuDNN's fused attention takes float16 and bfloat16"
    if D % 8:
        return "cuDNN's fused attention takes head dimensions in multiples of 8"
    if S == 1:
        return "PyTorch does not ask cuDNN about caches of length 1"
    return fused_refusal("cuDNN attention", B, without_gpu=False)


def prepare(q, k, v, lengths):
    return runner(SDPBackend.CUDNN_ATTENTION, q, k, v, lengths)
