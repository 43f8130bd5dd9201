"""torch's scaled_dot_product_attention, held to one of its back ends, for a query a sequence and lengths of the caches.

Query heads that share a head of the caches are handed over as queries of one head: without a causal mask they are
nothing else, and no cache is repeated. The lengths are data, so the mask is made in the call, [B, 1, 1, S] of booleans,
which the fused back ends turn into as many numbers for each query.
"""

import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ..attention.sdpa import SDPBackend, fused_refusal

__all__ = ["SDPBackend", "fused_refusal", "runner"]


def runner(backend, q, k, v, lengths):
    """``run`` for decoding by one SDPBackend, which raises where that back end cannot serve these tensors."""
    batches, heads, size = q.shape
    kv_heads = k.shape[1]
    places = torch.arange(k.shape[2], device=k.device)

    def run():
        queries = q.reshape(batches, kv_heads, heads // kv_heads, size)
        valid = (places < lengths[:, None])[:, None, None, :]
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(queries, k, v, attn_mask=valid).reshape(batches, heads, size)

    return run
