"""Images from NCHW to NHWC or back: y = x with its dimensions in another order, contiguous. Memory-bound.

``order`` is the permutation as int64 [4], (0, 2, 3, 1) to NHWC and (0, 3, 1, 2) to NCHW: a weight, since it stays for
many calls, so an implementation may read it before it is timed. For each image it is a transpose of [C, H·W]: large C
wants tiles, C = 3 wants pixels joined. No element changes, hence the tolerance: the output must be exact. ``flops`` is
0.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided, weight

EXACT = Tolerance(rtol=0.0, atol=0.0)
ORDERS = {"nhwc": (0, 2, 3, 1), "nchw": (0, 3, 1, 2)}


def inputs(generator, dtype, device, N, C, H, W, to="nhwc", layout="contiguous"):
    """x [N, C, H, W], or [N, H, W, C] where it goes to NCHW, and the order."""
    import torch

    shape = (N, C, H, W) if to == "nhwc" else (N, H, W, C)
    x = torch.randn(shape, generator=generator, dtype=dtype, device=device)
    return {
        "x": data(strided(x) if layout == "strided" else x),
        "order": weight(torch.tensor(ORDERS[to], dtype=torch.int64, device=device)),
    }


def reference(x, order):
    return x.permute(order.tolist()).contiguous()


def flops(N, C, H, W, to="nhwc", layout="contiguous"):
    return 0


def traffic(itemsize, N, C, H, W, to="nhwc", layout="contiguous"):
    size = N * C * H * W * itemsize
    return Traffic(read=size, write=size)


def images(N, C, H, W, to="nhwc", layout="contiguous"):
    return N


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=images,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"N": 0, "C": 3, "H": 4, "W": 4, "to": "nhwc"},
        {"N": 2, "C": 3, "H": 7, "W": 5, "to": "nhwc"},
        {"N": 2, "C": 3, "H": 40, "W": 72, "to": "nhwc"},
        {"N": 2, "C": 3, "H": 40, "W": 72, "to": "nchw"},
        {"N": 2, "C": 72, "H": 8, "W": 12, "to": "nhwc"},
        {"N": 2, "C": 72, "H": 8, "W": 12, "to": "nchw"},
        {"N": 1, "C": 17, "H": 6, "W": 6, "to": "nchw", "layout": "strided"},
    ),
    bench_shapes=(
        {"N": 8, "C": 64, "H": 56, "W": 56, "to": "nhwc"},
        {"N": 64, "C": 64, "H": 128, "W": 128, "to": "nhwc"},
        {"N": 64, "C": 64, "H": 128, "W": 128, "to": "nchw"},
        {"N": 64, "C": 3, "H": 512, "W": 512, "to": "nhwc"},
        {"N": 64, "C": 3, "H": 512, "W": 512, "to": "nchw"},
    ),
    tiers={
        "small": (case("float32", N=8, C=64, H=56, W=56, to="nhwc"),),
        "core": (
            case("float32", N=64, C=64, H=128, W=128, to="nhwc"),
            case("float16", N=64, C=64, H=128, W=128, to="nchw"),
            case("float32", N=64, C=3, H=512, W=512, to="nhwc"),
            case("float32", N=64, C=3, H=512, W=512, to="nchw"),
        ),
    },
)
