"""A pre-norm transformer layer with causal attention: h = x + attention(norm(x)), y = h + mlp(norm(h)).

x [B, S, D]; norm is layer normalisation with weight and bias; queries, keys and values are norm(x) · W + b, [D, D]
each, in H heads of D/H; a query sees the keys up to its own; the attended values go through an output projection; mlp
is gelu(z · up + b) · down + b with F columns in between and GELU by the error function. ``heads`` is H as a weight,
int32 [1].

Compute-bound as mathematics: 2·B·S·(4·D² + 2·D·F) FLOPs of products with weights and 2·B·S·(S + 1)·D for the pairs of
a query and a key that it sees; with D = 1024, F = 4096 and S = 512 some 26 MFLOP a token over 4 KiB of it. Unfused it
is largely bound by memory all the same: the scores of all heads pass through memory five times.

x is N(0, 1), weights N(0, 1/rows), biases N(0, 0.1²), norms' weights in 0.5 to 1.5: every product is about N(0, 1).

Tolerance. With a unit roundoff u a rounding costs 0.41·u of what is rounded, in norm. The attended values have a
standard deviation of about sqrt(e/S) and hardly matter but for the first tokens. h is rounded twice (projection, sum),
y twice, the inputs of the MLP, its activations and its result add some 0.41·sqrt(4)·u of the MLP's part, which is
about a third of y: 0.41·sqrt(4 + 4/9)·u = 0.9·u, more for short sequences. norm = 2·u, u = 2^-11 float16, 2^-8
bfloat16. Element by element: sums of up to 6 are rounded by 4·u twice before they may cancel, and six standard
deviations of the MLP's error are 3·u: atol = 12·u, rtol one unit in the last place.
"""

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided, weight

EPSILON = 1e-5


def inputs(generator, dtype, device, B, S, D, H, F, layout="contiguous"):
    """x (data), heads (int32 [1]) and the layer's parameters (weights), matrices as [rows in, columns out]."""
    import torch

    if layout not in ("contiguous", "strided"):
        raise ValueError(f"transformer_layer: unknown layout {layout!r}, expected contiguous or strided")
    if D % H:
        raise ValueError(f"transformer_layer: {H} heads do not divide {D}")

    def normal(shape, spread):
        drawn = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        return (spread * drawn).to(dtype)

    def norm(name):
        around_one = 0.5 + torch.rand(D, generator=generator, device=device, dtype=torch.float32)
        return {f"{name}_weight": weight(around_one.to(dtype)), f"{name}_bias": weight(normal(D, 0.1))}

    def linear(name, rows, columns):
        matrix = weight(normal((rows, columns), max(rows, 1) ** -0.5))
        return {name: matrix, f"{name}_bias": weight(normal(columns, 0.1))}

    x = normal((B, S, D), 1.0)
    made: dict[str, Input] = {
        "x": data(strided(x) if layout == "strided" else x),
        "heads": weight(torch.tensor([H], dtype=torch.int32, device=device)),
        **norm("norm1"),
    }
    for name in ("query", "key", "value", "output"):
        made |= linear(name, D, D)
    return {**made, **norm("norm2"), **linear("up", D, F), **linear("down", F, D)}


def reference(x, heads, **p):
    import torch
    from torch.nn import functional

    batches, length, width = x.shape

    def norm(tensor, name):
        return functional.layer_norm(tensor, (width,), p[f"{name}_weight"], p[f"{name}_bias"], EPSILON)

    def linear(tensor, name):
        return tensor @ p[name] + p[f"{name}_bias"]

    def in_heads(tensor):
        return tensor.view(batches, length, int(heads), width // int(heads)).transpose(1, 2)

    normed = norm(x, "norm1")
    attended = torch.empty_like(x)
    hidden = torch.ones((length, length), dtype=torch.bool, device=x.device).triu(1)
    q, k, v = (in_heads(linear(normed, name)) for name in ("query", "key", "value"))
    for batch in range(batches):  # the scores of all batches at once may not fit in float64
        scores = q[batch] @ k[batch].transpose(-2, -1) / q.shape[-1] ** 0.5
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        attended[batch] = (weights @ v[batch]).transpose(0, 1).reshape(length, width)
    h = x + linear(attended, "output")
    return h + linear(functional.gelu(linear(norm(h, "norm2"), "up")), "down")


def flops(B, S, D, H, F, layout="contiguous"):
    """Products with weights, and scores and values for the pairs of a query and a key that it sees."""
    return 2 * B * S * (4 * D * D + 2 * D * F) + 2 * B * S * (S + 1) * D


def traffic(itemsize, B, S, D, H, F, layout="contiguous"):
    parameters = 4 * D * D + 2 * D * F + 9 * D + F
    return Traffic(read=(B * S * D + parameters) * itemsize, write=B * S * D * itemsize)


def sequences(B, S, D, H, F, layout="contiguous"):
    return B


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=sequences,
    bound="compute",
    dtypes=("float16", "bfloat16"),
    tolerance={
        "float16": Tolerance(rtol=2.0**-10, atol=12 * 2.0**-11, norm=2.0**-10),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=12 * 2.0**-8, norm=2.0**-7),
    },
    check_shapes=(
        {"B": 1, "S": 1, "D": 64, "H": 1, "F": 64},
        {"B": 0, "S": 3, "D": 64, "H": 1, "F": 64},
        {"B": 2, "S": 5, "D": 16, "H": 2, "F": 40},
        {"B": 2, "S": 67, "D": 128, "H": 2, "F": 200},
        {"B": 1, "S": 40, "D": 128, "H": 1, "F": 160},
        {"B": 2, "S": 9, "D": 192, "H": 3, "F": 72, "layout": "strided"},
    ),
    bench_shapes=(
        {"B": 1, "S": 64, "D": 128, "H": 2, "F": 512},
        {"B": 1, "S": 512, "D": 1024, "H": 16, "F": 4096},
        {"B": 8, "S": 512, "D": 1024, "H": 16, "F": 4096},
        {"B": 32, "S": 512, "D": 1024, "H": 16, "F": 4096},
        {"B": 4, "S": 2048, "D": 1024, "H": 16, "F": 4096},
    ),
    tiers={
        "small": (case("bfloat16", B=1, S=64, D=128, H=2, F=512),),
        "core": (
            case("bfloat16", B=1, S=512, D=1024, H=16, F=4096),
            case("float16", B=8, S=512, D=1024, H=16, F=4096),
            case("bfloat16", B=8, S=512, D=1024, H=16, F=4096),
            case("bfloat16", B=32, S=512, D=1024, H=16, F=4096),
        ),
    },
    ladders={"fusion": ("torch_eager", "torch_sdpa", "torch_compile", "triton_fused")},
)
