"""3 × 3 convolution, batch normalisation by stored statistics, ReLU, residual: relu(bn(conv(x, filters))) + residual.

x [N, C, H, W], filters [O, C, 3, 3], stride 1, zeros around the image; bn is (z - mean) / sqrt(variance + 1e-5) ·
gamma + beta for each of O channels, all of which are weights and may be folded. Eager passes seven times more over the
result than needed: normalising reads and writes it, so does ReLU, the addition reads two and writes one.

x is N(0, 1) and filters N(0, 1 / 9C), so that the convolution is N(0, 1) whatever C is. mean is N(0, 0.1²), variance
in 0.5 to 1.5, gamma in 0.5 to 1.5, beta and residual N(0, 1): the scale is at most 1.5 / sqrt(0.5) = 2.1.

Tolerances. Float32: sums of 9C products err by about u·sqrt(9C/6) = 2e-6 for C = 512, u = 2^-24. Winograd's algorithm
F(4 × 4, 3 × 3), which cuDNN may choose, errs more: emulated in float32 on such inputs, by 6e-5 at most among 410,000
results and by 3.2e-6 in norm. Times 2.1, and some more for more results: atol = 2e-4, norm = 1e-5. TF32 rounds both
factors to 11 bits, 2.9e-4 in norm: refused.

Float16: eager rounds the convolution, the normalised value and the sum; implementations that fold bn into the filters
round those. The first two roundings are absolute where the residual cancels them: of values up to 6 (half a unit in
the last place 2^-9) times 2.1, and of values up to 16 (2^-8), together at most 8e-3; atol = 1e-2, rtol one unit in the
last place, 2^-10. In norm three roundings come to 0.41 · sqrt(3) · 2^-11; norm = 1.5 · 2^-11. Bfloat16 rounds eight
times coarser.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided, weight

EPSILON = 1e-5


def inputs(generator, dtype, device, N, C, O, H, W, layout="contiguous"):  # noqa: E741  # O as in the formula above
    """x and residual (data); filters, gamma, beta, mean and variance (weights), all in one dtype."""
    import torch

    if layout not in ("contiguous", "strided"):
        raise ValueError(f"conv_bn_relu_add: unknown layout {layout!r}, expected contiguous or strided")

    def normal(shape, spread=1.0):
        return spread * torch.randn(shape, generator=generator, device=device, dtype=torch.float32)

    def spread_around_one(size):
        return 0.5 + torch.rand(size, generator=generator, device=device, dtype=torch.float32)

    arranged = strided if layout == "strided" else lambda tensor: tensor
    return {
        "x": data(arranged(normal((N, C, H, W)).to(dtype))),
        "filters": weight(normal((O, C, 3, 3), (9 * C) ** -0.5).to(dtype)),
        "gamma": weight(spread_around_one(O).to(dtype)),
        "beta": weight(normal(O).to(dtype)),
        "mean": weight(normal(O, 0.1).to(dtype)),
        "variance": weight(spread_around_one(O).to(dtype)),
        "residual": data(arranged(normal((N, O, H, W)).to(dtype))),
    }


def reference(x, filters, gamma, beta, mean, variance, residual):
    import torch

    convolved = torch.nn.functional.conv2d(x, filters, padding=1)
    normalised = torch.nn.functional.batch_norm(convolved, mean, variance, gamma, beta, training=False, eps=EPSILON)
    return torch.relu(normalised) + residual


def flops(N, C, O, H, W, layout="contiguous"):  # noqa: E741
    """9·C multiplications and additions for each output, then a product, a sum, a maximum and a sum."""
    return N * O * H * W * (18 * C + 4)


def fewest_flops(N, C, O, H, W, layout="contiguous"):  # noqa: E741
    """By Winograd's F(4 × 4, 3 × 3), with 36 products where 144 are counted; larger tiles err beyond the tolerance."""
    return flops(N, C, O, H, W) // 4


def traffic(itemsize, N, C, O, H, W, layout="contiguous"):  # noqa: E741
    weights = 9 * O * C + 4 * O
    return Traffic(read=(N * (C + O) * H * W + weights) * itemsize, write=N * O * H * W * itemsize)


def images(N, C, O, H, W, layout="contiguous"):  # noqa: E741
    return N


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=images,
    fewest_flops=fewest_flops,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-6, atol=2e-4, norm=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=1e-2, norm=1.5 * 2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=8e-2, norm=1.5 * 2.0**-8),
    },
    check_shapes=(
        {"N": 1, "C": 1, "O": 1, "H": 1, "W": 1},
        {"N": 0, "C": 3, "O": 4, "H": 5, "W": 5},
        {"N": 2, "C": 3, "O": 5, "H": 7, "W": 5},
        {"N": 3, "C": 13, "O": 70, "H": 6, "W": 6},
        {"N": 1, "C": 72, "O": 64, "H": 8, "W": 16},
        {"N": 1, "C": 8, "O": 9, "H": 3, "W": 300},
        {"N": 2, "C": 9, "O": 7, "H": 1, "W": 9, "layout": "strided"},
    ),
    bench_shapes=(
        {"N": 1, "C": 64, "O": 64, "H": 28, "W": 28},
        {"N": 32, "C": 64, "O": 64, "H": 56, "W": 56},
        {"N": 128, "C": 64, "O": 64, "H": 56, "W": 56},
        {"N": 128, "C": 128, "O": 128, "H": 28, "W": 28},
        {"N": 128, "C": 256, "O": 256, "H": 14, "W": 14},
    ),
    tiers={
        "small": (case("float32", N=1, C=64, O=64, H=28, W=28),),
        "core": (
            case("float32", N=32, C=64, O=64, H=56, W=56),
            case("float16", N=128, C=64, O=64, H=56, W=56),
            case("bfloat16", N=128, C=128, O=128, H=28, W=28),
            case("float16", N=128, C=256, O=256, H=14, W=14),
        ),
    },
    ladders={
        "fusion": ("torch_eager", "torch_folded", "torch_compile", "cuda_implicit"),
    },
)
