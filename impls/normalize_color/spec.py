"""Normalise and colour-transform a batch of NHWC images: y = ((x - mean) / std) · M, C = D = 3. Memory-bound.

    x [N, H, W, 3]   data    pixels in [0, 1], none near the mean
    mean [3]         weight  in [0.4, 0.6)
    std [3]          weight  in [0.25, 0.35)
    M [3, 3]         weight  y[..., d] = sum_c z[..., c] · M[c, d]; a colour-correction matrix: a diagonal in
                             [1, 1.5), beside it magnitudes in [0.05, 0.25) whose signs differ across the diagonal,
                             so that a transposed M is wrong in every off-diagonal element

21 operations a pixel (3 subtractions, 3 divisions, 9 products, 6 sums) for 6 elements moved. Layouts of the check
shapes: ``strided`` has a gap of one element between neighbours; ``offset`` is contiguous but starts one element into
its buffer, so that no address is a multiple of 16 bytes.

Tolerance
---------
With u the unit roundoff of the dtype (2^-24, 2^-11, 2^-8) and v = 2^-24 that of the float32 accumulator, the ranges
above give |z| <= 2.4 and column sums of |M| <= 2. Two ways to evaluate y are admitted, and the bound is the larger
of the two, to first order:

    two steps       x - mean and its quotient by std are each rounded to the dtype, as eager does: a relative error
                    of 2u in z, so 2u · sum|z M| <= 9.6u; the dot product adds 3v · 4.8.
    folded weights  y = x · M' + b with M' = M / std and b = -mean · M', both rounded to the dtype: columns of |M'|
                    sum to at most 8 and |b| to at most 4.8, so 12.8u; product and sums add 4v · 12.8.

Rounding y itself adds u |y|, the only relative part. 12.8u is 1.6 units in the last place of the largest outputs
(|y| <= 4.8): folding costs that much because x · M' and b cancel.

Over a whole tensor the rounding errors are independent and mostly far from their bounds, while the gap in x around
the mean (|z| >= 0.42) and M's dominant diagonal (smallest singular value >= 0.5) keep |y| of a pixel above 0.36: the
Euclidean norm is held to a tighter bound, NORM_ROUNDINGS unit roundoffs.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided, weight

ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
NORM_ROUNDINGS = 8


def tolerance(dtype):
    """The bound derived in the module's docstring."""
    u, v = ROUNDOFF[dtype], ROUNDOFF["float32"]
    two_steps = 2 * 4.8 * u + 3 * 4.8 * v
    folded = 12.8 * u + 4 * 12.8 * v
    return Tolerance(rtol=u, atol=max(two_steps, folded), norm=NORM_ROUNDINGS * u)


def inputs(generator, dtype, device, N, H, W, layout="contiguous"):
    import torch

    def uniform(low, high, *shape):
        return torch.rand(shape, generator=generator, device=device) * (high - low) + low

    x = torch.rand((N, H, W, 3), generator=generator, dtype=dtype, device=device)
    x /= 2
    x += 0.5 * (x >= 0.25)  # [0, 0.25) and [0.75, 1]: near the mean y vanishes, and relative error means nothing
    if layout == "strided":
        x = strided(x)
    elif layout == "offset":
        x = x.new_empty(x.numel() + 1)[1:].view(x.shape).copy_(x)
    signs = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], device=device)
    M = signs * uniform(0.05, 0.25, 3, 3) + torch.diag(uniform(1.0, 1.5, 3))
    return {
        "x": data(x),
        "mean": weight(uniform(0.4, 0.6, 3).to(dtype)),
        "std": weight(uniform(0.25, 0.35, 3).to(dtype)),
        "M": weight(M.to(dtype)),
    }


def reference(x, mean, std, M):
    return ((x - mean) / std) @ M


def flops(N, H, W, layout="contiguous"):
    return 21 * N * H * W


def traffic(itemsize, N, H, W, layout="contiguous"):
    pixels = 3 * N * H * W
    weights = 3 + 3 + 9
    return Traffic(read=(pixels + weights) * itemsize, write=pixels * itemsize)


def samples(N, H, W, layout="contiguous"):
    return N


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={dtype: tolerance(dtype) for dtype in ROUNDOFF},
    check_shapes=(
        {"N": 0, "H": 4, "W": 4},
        {"N": 1, "H": 1, "W": 1},
        {"N": 1, "H": 5, "W": 7},
        {"N": 2, "H": 37, "W": 41},
        {"N": 3, "H": 101, "W": 103},
        {"N": 1, "H": 64, "W": 64},
        {"N": 2, "H": 37, "W": 41, "layout": "strided"},
        {"N": 2, "H": 37, "W": 41, "layout": "offset"},
    ),
    bench_shapes=(
        {"N": 1, "H": 512, "W": 512},  # 3 MiB of float32
        {"N": 16, "H": 512, "W": 512},  # 48 MiB
        {"N": 128, "H": 512, "W": 512},  # 384 MiB
        {"N": 1024, "H": 512, "W": 512},  # 3.2 GB: byte offsets beyond 32 bits
    ),
    tiers={
        "small": (case("float32", N=1, H=512, W=512),),
        "core": (
            case("float32", N=16, H=512, W=512),
            case("float32", N=128, H=512, W=512),
            case("float16", N=128, H=512, W=512),
            case("float32", N=1024, H=512, W=512),
        ),
    },
    samples=samples,
    ladders={
        "from PyTorch to CUDA": (
            "torch_eager",
            "torch_jit",
            "torch_compile",
            "torch_affine",
            "cuda_pixel",
            "cuda_affine",
            "cuda_vec",
        ),
        "three channels and 16 bytes": ("cuda_affine", "cuda_padded", "cuda_vec"),
        "asynchronous copy": ("cuda_affine", "cuda_async"),
        "approximate division": ("cuda_pixel", "cuda_fastmath"),
    },
)
