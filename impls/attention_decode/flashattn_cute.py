"""FlashAttention 4's kernel for Hopper in CuTe DSL with a query a sequence and lengths of the caches, query heads
packed.

Memory-bound: the valid part of the caches is read once. It is built for many queries: a block walks over a whole
sequence, so that few sequences leave multiprocessors idle. Prediction: behind the split kernels, far behind where
lengths differ.
"""

from flash_attn.cute.interface import flash_attn_varlen_func

PACK = 8  # elements of 16 bits in the 16 bytes that TMA counts strides in


def unsupported(dtype, B, D, **shape):
    if dtype == "float32":
        return "FlashAttention 4 takes 16-bit types"
    if B == 0:
        return "FlashAttention 4 takes no batch of nothing"
    return f"FlashAttention 4 takes heads of a multiple of {PACK} elements, D={D}" if D % PACK else None


def prepare(q, k, v, lengths):
    def run():
        caches = [x.transpose(1, 2) for x in (k, v)]
        out, *_ = flash_attn_varlen_func(q[:, None], *caches, seqused_k=lengths)
        return out[:, 0]

    return run
