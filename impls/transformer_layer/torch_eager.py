"""Nothing fused: three projections, scores, scale, mask, softmax and values each on their own, then GELU and two sums.

Over 20 launches. With n = B·S·D elements and F = 4D: norms 4n, projections 2n each, the copies that heads cost 2n
each, the output projection 2n, sums 6n, the MLP's products 10n, GELU 8n; and eleven times the scores, B·H·S² elements:
a product writes them, scale, mask and softmax read and write them, a product reads them, and copies of a batched
product may add to that. Memory-bound in all but the products. The parts are functions of their own, so that the share
of each can be measured.

Reached on nvidia-h200 at 968ac8c4: 2.14 ms for bfloat16 B=32,S=512,D=1024,H=16,F=4096, 201 TFLOP/s, 26 % of the compute
ceiling.
"""

import torch
from torch.nn import functional

EPSILON = 1e-5


def layer_norm(x, weight, bias):
    return functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)


def linear(x, weight, bias):
    """x · weight + bias over the last dimension."""
    return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], weight.shape[1])


def attention(normed, p, heads, hidden):
    """Causal attention with its projections; ``hidden`` [S, S] is true where a query does not see a key."""
    batches, length, width = normed.shape

    def in_heads(name):
        rows = linear(normed, p[name], p[f"{name}_bias"])
        return rows.view(batches, length, heads, width // heads).transpose(1, 2)

    query, key, value = in_heads("query"), in_heads("key"), in_heads("value")
    scores = torch.matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5)
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
    attended = torch.matmul(weights, value).transpose(1, 2).reshape(batches, length, width)
    return linear(attended, p["output"], p["output_bias"])


def feed_forward(normed, p):
    return linear(functional.gelu(linear(normed, p["up"], p["up_bias"])), p["down"], p["down_bias"])


def layer(x, p, heads, hidden):
    """The whole layer; p are its parameters by name."""
    h = x + attention(layer_norm(x, p["norm1_weight"], p["norm1_bias"]), p, heads, hidden)
    return h + feed_forward(layer_norm(h, p["norm2_weight"], p["norm2_bias"]), p)


def causal_mask(x):
    """[S, S], true above the diagonal: it depends on the shape alone, as a module keeps it in a buffer."""
    length = x.shape[1]
    return torch.ones((length, length), dtype=torch.bool, device=x.device).triu(1)


def prepare(x, heads, **p):
    count, hidden = int(heads), causal_mask(x)

    def run():
        return layer(x, p, count, hidden)

    return run
