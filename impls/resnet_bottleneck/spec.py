"""A bottleneck block of ResNet-50: y = relu(conv1(relu(conv3(relu(conv1(x))))) + x), each convolution with a bias.

x [N, E, H, W]; reduce [C, E, 1, 1], spatial [C, C, 3, 3] with zeros around the image, expand [E, C, 1, 1], stride 1; E
is 4C in the network. Batch normalisation is folded into weights and biases, as for inference. With m = N·C·H·W
elements and E = 4C the block moves 8m at least, and as three convolutions with their epilogues 16m: two intermediate
results of m are written and read, and x is read again as the residual.

x is N(0, 1) and the weights N(0, 1/E), N(0, 2/9C) and N(0, 2/C), which keeps the second moment of activations near 1
behind each ReLU; biases are N(0, 0.1²).

Tolerances. With a unit roundoff u a rounded activation errs by 0.41·u in norm, and a convolution passes a random error
on in the same proportion. Eager rounds both intermediate results, the last convolution and the sum, with biases added
on their own up to seven times: 0.41·sqrt(7)·u = 1.1·u, and norm = 1.5·u (u = 2^-11 float16, 2^-8 bfloat16). Element by
element: sums of up to 6 are rounded by 4·u before the residual cancels them, what the intermediate roundings pass on
is random, six standard deviations of 0.41·sqrt(5)·u: together 10·u, and 12·u = atol. Float32: Winograd's algorithm
errs by 3.2e-6 in norm (see conv_bn_relu_add); norm = 1e-5, atol = 1e-4. TF32, three times 2.9e-4 in norm, is refused.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided, weight


def inputs(generator, dtype, device, N, C, E, H, W, layout="contiguous"):
    """x (data) and the weights and biases of the three convolutions, all in one dtype."""
    import torch

    if layout not in ("contiguous", "strided"):
        raise ValueError(f"resnet_bottleneck: unknown layout {layout!r}, expected contiguous or strided")

    def normal(shape, variance):
        drawn = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        return (variance**0.5 * drawn).to(dtype)

    x = normal((N, E, H, W), 1.0)
    return {
        "x": data(strided(x) if layout == "strided" else x),
        "reduce": weight(normal((C, E, 1, 1), 1 / E)),
        "reduce_bias": weight(normal(C, 0.01)),
        "spatial": weight(normal((C, C, 3, 3), 2 / (9 * C))),
        "spatial_bias": weight(normal(C, 0.01)),
        "expand": weight(normal((E, C, 1, 1), 2 / C)),
        "expand_bias": weight(normal(E, 0.01)),
    }


def reference(x, reduce, reduce_bias, spatial, spatial_bias, expand, expand_bias):
    import torch
    from torch.nn import functional

    narrow = torch.relu(functional.conv2d(x, reduce, reduce_bias))
    filtered = torch.relu(functional.conv2d(narrow, spatial, spatial_bias, padding=1))
    return torch.relu(functional.conv2d(filtered, expand, expand_bias) + x)


def flops(N, C, E, H, W, layout="contiguous"):
    """Multiplications and additions of the products, then a bias and a maximum each, and the residual."""
    return N * H * W * (2 * (2 * E * C + 9 * C * C) + 2 * (2 * C + E) + E)


def fewest_flops(N, C, E, H, W, layout="contiguous"):
    """The 3 × 3 convolution by Winograd's F(4 × 4, 3 × 3), see conv_bn_relu_add."""
    return flops(N, C, E, H, W) - N * H * W * 2 * 9 * C * C * 3 // 4


def traffic(itemsize, N, C, E, H, W, layout="contiguous"):
    weights = 2 * E * C + 9 * C * C + 2 * C + E
    return Traffic(read=(N * E * H * W + weights) * itemsize, write=N * E * H * W * itemsize)


def images(N, C, E, H, W, layout="contiguous"):
    return N


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=images,
    fewest_flops=fewest_flops,
    bound="memory",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-6, atol=1e-4, norm=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=12 * 2.0**-11, norm=1.5 * 2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=12 * 2.0**-8, norm=1.5 * 2.0**-8),
    },
    check_shapes=(
        {"N": 1, "C": 1, "E": 1, "H": 1, "W": 1},
        {"N": 0, "C": 2, "E": 8, "H": 3, "W": 3},
        {"N": 2, "C": 5, "E": 20, "H": 7, "W": 5},
        {"N": 3, "C": 66, "E": 70, "H": 6, "W": 6},
        {"N": 1, "C": 16, "E": 64, "H": 8, "W": 16},
        {"N": 2, "C": 9, "E": 7, "H": 1, "W": 9, "layout": "strided"},
    ),
    bench_shapes=(
        {"N": 1, "C": 32, "E": 128, "H": 28, "W": 28},
        {"N": 32, "C": 64, "E": 256, "H": 56, "W": 56},
        {"N": 128, "C": 64, "E": 256, "H": 56, "W": 56},
        {"N": 128, "C": 128, "E": 512, "H": 28, "W": 28},
        {"N": 128, "C": 256, "E": 1024, "H": 14, "W": 14},
    ),
    tiers={
        "small": (case("float32", N=1, C=32, E=128, H=28, W=28),),
        "core": (
            case("float32", N=32, C=64, E=256, H=56, W=56),
            case("float16", N=128, C=64, E=256, H=56, W=56),
            case("bfloat16", N=128, C=128, E=512, H=28, W=28),
            case("float16", N=128, C=256, E=1024, H=14, W=14),
        ),
    },
)
