"""oneDNN's inner product as torch hands it out to its compiler: x [T, D] by a weight [N, D], bias and activation behind
it.
"""

import torch


def transposed(weight):
    """[D, N] as oneDNN wants it, [N, D]: laid out once, beforehand."""
    return weight.t().contiguous()


def linear(x, weight, bias=None, activation="none"):
    """activation(x·weightᵀ + bias) in one primitive; a fresh tensor."""
    return torch.ops.mkldnn._linear_pointwise(x.contiguous(), weight, bias, activation, [], "none")


def unsupported(dtype, layout="contiguous", **sizes):
    if dtype == "float16":
        return "oneDNN multiplies float16 on few CPUs alone (avx512_fp16)"
    if dtype == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return "torch's oneDNN multiplies no bfloat16 on this CPU"
    return "oneDNN takes no matrix without elements" if 0 in sizes.values() else None
