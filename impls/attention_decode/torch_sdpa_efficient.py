"""Memory-efficient attention in PyTorch, the mask as a bias, an online softmax over all keys of a sequence in a block.

Memory-bound: B·S positions of both caches are read whatever the lengths, and G·S biases a head, which are made in the
call. Nothing is split over keys, so that few sequences leave multiprocessors idle. Predicted: far behind the split
kernels for few sequences, behind torch_compile elsewhere.
"""

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, D, **shape):
    if D % 8:
        return "memory-efficient attention reads rows by 16-byte vectors: head dimensions in multiples of 8"
    return fused_refusal("memory-efficient attention", B, without_gpu=False)


def prepare(q, k, v, lengths):
    return runner(SDPBackend.EFFICIENT_ATTENTION, q, k, v, lengths)
