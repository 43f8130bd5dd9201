"""The 3 × 3 and the last 1 × 1 convolution in one launch, behind one for the first, for up to 128 channels.

With m = N·C·H·W elements and E = 4C, 14m move where triton_fused moves 16m: a program of the second launch holds all
channels of its pixels behind the 3 × 3 convolution, and multiplies them by the last one's filters, a slice of the
outputs at a time, without writing them. What a slice needs of registers is its own sums and its residual, so that
nothing spills where triton_fused holds 128 outputs. With more channels, and in float32, the block is bound by its
products, and a program's would not fit.

Predicted for C = 64 in 16 bits, N = 128, 56 × 56, from a copy rate of 4.3 TB/s and L2 reads of 5.5 TB/s: the first
launch, 5m and 257 MB, takes the 69 µs that it was seen to take in triton_fused. The second moves 9m, 462 MB and 107 µs,
and reads 9m for its taps and, with 128 pixels a program, 6.5m of filters from L2, 796 MB and 145 µs; where the two
overlap by half, 180 µs. Together 249 µs, 4.4 times eager. 256 pixels a program halve the filters' part.
"""

import torch
import triton
import triton.language as tl

from .._triton.convolution import (
    aligned,
    convolve,
    convolved,
    depth_of,
    in_planes,
    of_channels,
    packed,
    padded,
)
from .._triton.rounding import rounded

MOST_CHANNELS = 128  # whose sums, of 64 or 128 pixels, a program holds


def unsupported(dtype: str, C: int, **shape) -> str | None:
    if dtype == "float32":
        return "float32 is multiplied by CUDA cores, which bound it: a launch less saves nothing (see triton_fused)"
    if padded(C) > MOST_CHANNELS:
        return f"{C} channels: expected at most {MOST_CHANNELS}, as many as a program holds sums of (see triton_fused)"
    return None


def _config(pixels, slice_outputs, stages, warps):
    return triton.Config({"PIXELS": pixels, "SLICE": slice_outputs}, num_stages=stages, num_warps=warps)


configs = [_config(256, 64, 3, 8), _config(128, 64, 3, 8), _config(64, 64, 4, 4)]


@triton.autotune(configs=configs, key=["pixels", "height", "width", "outputs", "PADDED"])
@triton.jit
def filter_and_expand_kernel(
    narrow,
    spatial,
    spatial_bias,
    expand,
    expand_bias,
    residual,
    y,
    pixels,
    plane,
    height,
    width,
    channels,
    outputs,
    PADDED: tl.constexpr,
    ALIGNED: tl.constexpr,
    ACROSS: tl.constexpr,
    HELD: tl.constexpr,
    DEPTH: tl.constexpr,
    INTERPRETED: tl.constexpr,
    PIXELS: tl.constexpr,
    SLICE: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    held = tl.arange(0, HELD)  # channels behind the 3 × 3 convolution; beyond PADDED they are zeros
    exists = pixel < pixels
    sums = convolved(
        narrow,
        spatial,
        pixel,
        held,
        pixels,
        plane,
        height,
        width,
        channels,
        PADDED,
        ALIGNED,
        PADDED,
        3,
        False,
        DEPTH,
        INTERPRETED,
    )
    sums += tl.load(spatial_bias + held, mask=held < channels, other=0.0)[None, :]
    filtered = rounded(tl.where(sums < 0.0, 0.0, sums), y.dtype.element_ty, INTERPRETED)
    if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
        filtered = filtered.to(tl.float32)

    for first in range(0, outputs, SLICE):
        output = first + tl.arange(0, SLICE)
        known_output = output < outputs
        filters = tl.load(
            expand + held[:, None] * ACROSS + output[None, :],
            mask=(held < PADDED)[:, None] & (output < ACROSS)[None, :],
            other=0.0,
        )
        if INTERPRETED:
            filters = filters.to(tl.float32)
        offsets = in_planes(pixel, plane, outputs, ALIGNED)[:, None] + of_channels(output, plane, ALIGNED)[None, :]
        stored = exists[:, None] & known_output[None, :]
        added = tl.load(residual + offsets, mask=stored, other=0.0)  # asked for before the product, not after it
        value = tl.dot(filtered, filters, input_precision="ieee")
        value += tl.load(expand_bias + output, mask=known_output, other=0.0)[None, :]
        value += added.to(tl.float32)
        value = tl.where(value < 0.0, 0.0, value)
        tl.store(y + offsets, rounded(value, y.dtype.element_ty, INTERPRETED), mask=stored)


def filter_and_expand(narrow, planes, spatial, spatial_bias, expand, expand_bias, residual):
    """relu(conv1(relu(conv3(narrow))) + residual), ``narrow`` rows of pixels of images ``planes`` (N, C, H, W).

    ``spatial`` and ``expand`` are ``packed``, biases float32 [C] and [E]. The residual is [N, E, H, W], contiguous.
    """
    images, channels, height, width = planes
    outputs, pixels = expand_bias.shape[0], images * height * width
    y = torch.empty_like(residual)

    def grid(chosen):
        return (triton.cdiv(pixels, chosen["PIXELS"]),)

    filter_and_expand_kernel[grid](
        narrow,
        spatial,
        spatial_bias,
        expand,
        expand_bias,
        residual,
        y,
        pixels,
        height * width,
        height,
        width,
        channels,
        outputs,
        PADDED=padded(channels),
        ALIGNED=aligned(height * width),
        ACROSS=expand.shape[1],
        HELD=triton.next_power_of_2(padded(channels)),
        DEPTH=depth_of(channels, residual.element_size()),
        INTERPRETED=bool(triton.knobs.runtime.interpret),
    )
    return y


def prepare(x, reduce, reduce_bias, spatial, spatial_bias, expand, expand_bias):
    images, _, height, width = x.shape
    inner = (images, reduce.shape[0], height, width)
    first, second, third = packed(reduce), packed(spatial), packed(expand)
    ones = torch.ones(reduce.shape[0], dtype=torch.float32, device=x.device)
    biases = [bias.float() for bias in (reduce_bias, spatial_bias, expand_bias)]

    def run():
        planes = x.contiguous()
        if planes.numel() == 0:
            return torch.empty_like(planes)
        narrow = convolve(planes, planes.shape, first, ones, biases[0], side=1, planes_out=False)
        return filter_and_expand(narrow, inner, second, biases[1], third, biases[2], planes)

    run()
    return run
