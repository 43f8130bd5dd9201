"""The backward pass of layer_norm: gradients of x [M, N], weight and bias [N], from the saved mean and rstd [M].

With h = (x - mean) · rstd and g = grad_output · weight, averages taken over a row and sums over the rows,

    grad_x = (g - avg(g) - h · avg(g · h)) · rstd,  grad_weight = sum(grad_output · h),  grad_bias = sum(grad_output)

(Ba, Kiros and Hinton, "Layer Normalization", 2016, differentiated; the same form as in Apex and in torch's
native_layer_norm_backward). mean and rstd are float32 whatever the dtype, as frameworks keep them on a GPU, and the
operator is this formula for whatever mean and rstd it is given. Memory-bound: about 12 operations for three memory
accesses an element.

grad_output is N(0, 1) up to 256 rows and shrinks beyond, so that the parameters' gradients stay N(0, 256) about; grad_x
is of the size of grad_output · rstd. Layouts of check shapes (impls/_specs/rows.py): ``large`` has values of N(0,
400²), whose squares overflow float16, and rstd 1/400; ``shifted`` is N(64, 1), where sums of grad_output · x instead of
grad_output · h cancel.

Tolerance. float32: in ``shifted`` a kernel that forms grad_output·x first, as torch's for CPUs does, loses
64·2^-24·sqrt(M): 1e-5. A column's sum over M rows is added up in two stages, and errors of the second count: n partial
sums one after the other, the k-th of size 16·sqrt(k/n), are off by some 0.2·2^-23·16·n/sqrt(n) = 0.2·2^-23·16·sqrt(n),
6e-6 for n = 256, and by five times that in the worst of 8192 columns. On an H200, sums of 128 (16384 rows of N(0, 1))
were off by 2.1e-4 in eager and by 8e-5 to 1.1e-4 in the kernels here, an eighth of which is 2.6e-5 and 1.4e-5: atol
5e-5. A 16-bit output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight

EPSILON = 1e-5


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """grad_output and x [M, N], weight [N] in 0.5 to 1.5, in one dtype, and mean and rstd [M] of x in float32."""
    import torch

    from .._specs.rows import matrix
    from .._specs.upstream import upstream

    x = matrix(generator, dtype, device, M, N, layout)
    grad_output = upstream(generator, dtype, device, M, N, layout)
    scale = 0.5 + torch.rand(N, generator=generator, dtype=torch.float32, device=device)
    mean = x.float().mean(dim=-1)
    variance = (x.float() - mean[:, None]).square().mean(dim=-1)
    return {
        "grad_output": data(grad_output),
        "x": data(x),
        "weight": weight(scale.to(dtype)),
        "mean": data(mean),
        "rstd": data(torch.rsqrt(variance + EPSILON)),
    }


def reference(grad_output, x, weight, mean, rstd):
    normal = (x - mean[:, None]) * rstd[:, None]
    scaled = grad_output * weight
    level = scaled.mean(dim=-1, keepdim=True)
    slope = (scaled * normal).mean(dim=-1, keepdim=True)
    grad_x = (scaled - level - normal * slope) * rstd[:, None]
    return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)


def flops(M, N, layout="contiguous"):
    """Three operations for h and g, six for four sums, three and more for grad_x: 12 an element."""
    return 12 * M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=(2 * M * N + N) * itemsize + 8 * M, write=(M * N + 2 * N) * itemsize)


def rows(M, N, layout="contiguous"):
    return M


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=rows,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=5e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=5e-5),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=5e-5),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 3},
        {"M": 19, "N": 1000},
        {"M": 3, "N": 4097},
        {"M": 11, "N": 768, "layout": "strided"},
        {"M": 6, "N": 2048, "layout": "large"},
        {"M": 6, "N": 2048, "layout": "shifted"},
        {"M": 2, "N": 16392},
    ),
    bench_shapes=(
        {"M": 4096, "N": 768},
        {"M": 16384, "N": 1024},
        {"M": 16384, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 2048, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=768),),
        "core": (case("float32", M=16384, N=4096), case("bfloat16", M=16384, N=4096)),
    },
)
