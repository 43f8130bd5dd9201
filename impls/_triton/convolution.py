"""A convolution with its epilogue as one product, pixels by [taps · channels] by outputs, no im2col in memory.

Pixels are numbered over all images, n·H·W + h·W + w. ``to_pixels`` turns planes [N, C, H, W] into rows of channels, a
row a pixel, padded with zeros to a multiple of 16 channels: then each tap of a 3 × 3 kernel reads whole vectors. A
1 × 1 kernel reads planes as they are. Neighbours outside the image are masked.
"""

import math

import torch
import triton
import triton.language as tl

from .rounding import rounded

CHANNELS = 16  # rows of pixels are padded to a multiple of this many
GROUP = 8  # tiles of pixels that share weights in L2


def padded(channels):
    return -(-channels // CHANNELS) * CHANNELS


def depth_of(channels, itemsize):
    """Channels multiplied at a time: the largest of 64 (float32: 32), 32 and 16 that divides the padded number."""
    return next(depth for depth in (128 // itemsize, 32, 16) if padded(channels) % depth == 0)


def packed(filters):
    """[O, C, k, k] → [k·k·C, O], C and O padded with zeros to multiples of 16."""
    outputs, channels, side, _ = filters.shape
    rows = filters.new_zeros((side * side, padded(channels), padded(outputs)))
    rows[:, :channels, :outputs] = filters.permute(2, 3, 1, 0).flatten(0, 1)
    return rows.flatten(0, 1)


@triton.jit
def in_planes(pixel, plane, channels, ALIGNED: tl.constexpr):
    """Offsets of pixels in [N, channels, plane], of channel 0. Runs of ALIGNED, a divisor of plane, stay together."""
    place = (pixel // plane).to(tl.int64) * channels * plane + pixel % plane
    return tl.max_contiguous(tl.multiple_of(place, ALIGNED), ALIGNED)


@triton.jit
def of_channels(channel, plane, ALIGNED: tl.constexpr):
    return tl.multiple_of(channel.to(tl.int64) * plane, ALIGNED)


@triton.jit
def to_pixels_kernel(
    x,
    rows,
    pixels,
    plane,
    channels,
    PADDED: tl.constexpr,
    ALIGNED: tl.constexpr,
    PIXELS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1) * DEPTH + tl.arange(0, DEPTH)
    offsets = in_planes(pixel, plane, channels, ALIGNED)[None, :] + of_channels(channel, plane, ALIGNED)[:, None]
    inside = (pixel < pixels)[None, :] & (channel < channels)[:, None]
    tile = tl.load(x + offsets, mask=inside, other=0.0)
    stored = (pixel < pixels)[:, None] & (channel < PADDED)[None, :]
    tl.store(rows + pixel.to(tl.int64)[:, None] * PADDED + channel[None, :], tl.trans(tile), mask=stored)


def aligned(plane):
    """Pixels that lie together and aligned in every plane, as Triton must be told: it sees no divisor but 16."""
    return math.gcd(plane, 16)


def to_pixels(x):
    """x [N, C, H, W] as [N·H·W, C padded to a multiple of 16], on every call: x is data."""
    images, channels, height, width = x.shape
    pixels, pitch = images * height * width, padded(channels)
    rows = torch.empty((pixels, pitch), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(pixels, 128), triton.cdiv(pitch, 32))
    plane = height * width
    constants = {"PADDED": pitch, "ALIGNED": aligned(plane), "PIXELS": 128, "DEPTH": 32}
    to_pixels_kernel[grid](x, rows, pixels, plane, channels, **constants, num_warps=4)
    return rows


@triton.jit
def convolved(
    source,
    weights,
    pixel,
    output,
    pixels,
    plane,
    height,
    width,
    channels,
    PADDED: tl.constexpr,
    ALIGNED: tl.constexpr,
    ACROSS: tl.constexpr,
    SIDE: tl.constexpr,
    PLANES_IN: tl.constexpr,
    DEPTH: tl.constexpr,
    INTERPRETED: tl.constexpr,
):
    """Sums [pixel, output] of a convolution in float32, tap by tap and DEPTH channels at a time."""
    inner = tl.arange(0, DEPTH)
    exists = pixel < pixels
    in_plane = pixel % plane
    row = in_plane // width
    column = in_plane % width
    total = tl.zeros((pixel.shape[0], output.shape[0]), tl.float32)
    blocks: tl.constexpr = PADDED // DEPTH
    for block in range(SIDE * SIDE * blocks):
        tap = block // blocks
        channel = (block % blocks) * DEPTH + inner
        if PLANES_IN:
            place = in_planes(pixel, plane, channels, ALIGNED)[None, :] + of_channels(channel, plane, ALIGNED)[:, None]
            known = exists[None, :] & (channel < channels)[:, None]
            tile = tl.trans(tl.load(source + place, mask=known, other=0.0))
        else:
            down = tap // SIDE - SIDE // 2
            right = tap % SIDE - SIDE // 2
            seen = exists & (row + down >= 0) & (row + down < height) & (column + right >= 0) & (column + right < width)
            place = (pixel + down * width + right).to(tl.int64) * PADDED
            tile = tl.load(source + place[:, None] + channel[None, :], mask=seen[:, None], other=0.0)
        tap_weights = tl.load(
            weights + (tap * PADDED + channel)[:, None] * ACROSS + output[None, :],
            mask=(output < ACROSS)[None, :],
            other=0.0,
        )
        if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
            tile = tile.to(tl.float32)
            tap_weights = tap_weights.to(tl.float32)
        total = tl.dot(tile, tap_weights, total, input_precision="ieee")
    return total


def _config(pixels, outputs, stages, warps):
    return triton.Config({"PIXELS": pixels, "OUTPUTS": outputs}, num_stages=stages, num_warps=warps)


configs = [
    _config(256, 128, 3, 8),
    _config(128, 128, 3, 8),
    _config(256, 64, 3, 8),
    _config(128, 64, 4, 4),
    _config(64, 64, 3, 4),
]

_FEWEST_TILES = 96
_FEW_STEPS = 2  # over the channels


def pruned(candidates, arguments, SIDE, PADDED, DEPTH, **_):
    """Two candidates at most, since an operator has several convolutions: as wide as the outputs, 128 or 256 pixels.

    Float32, which holds half as many elements, and images too few to fill a GPU with those get 64 × 64. A product of
    few steps is mostly its epilogue, which has a residual to hold beside the sums: 128 pixels by 64 or 128 outputs. At
    256 by 128 a thread has no registers left for that (232 bytes of spills, 211 µs of resnet_bottleneck's 387 for
    C=64 on an H200 at 968ac8c4).
    """
    across = 128 if arguments["outputs"] > 64 else 64
    tiles = triton.cdiv(arguments["pixels"], 128) * triton.cdiv(arguments["outputs"], across)
    small = arguments["source"].element_size() == 4 or tiles < _FEWEST_TILES
    wide = not small and across == 128 and SIDE * SIDE * PADDED // DEPTH <= _FEW_STEPS

    def fits(config):
        down, outputs = config.kwargs["PIXELS"], config.kwargs["OUTPUTS"]
        if wide:
            return down == 128
        return outputs == (64 if small else across) and (down == 64) == small

    return [config for config in candidates if fits(config)] or candidates[:1]


@triton.autotune(
    configs=configs,
    key=["pixels", "height", "width", "channels", "outputs", "SIDE", "PLANES_IN", "PLANES_OUT", "ADD_FIRST"],
    prune_configs_by={"early_config_prune": pruned},
)
@triton.jit
def conv_kernel(
    source,
    weights,
    scale,
    shift,
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
    SIDE: tl.constexpr,
    PLANES_IN: tl.constexpr,
    PLANES_OUT: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    ADD_FIRST: tl.constexpr,
    GROUPED: tl.constexpr,
    DEPTH: tl.constexpr,
    INTERPRETED: tl.constexpr,
    PIXELS: tl.constexpr,
    OUTPUTS: tl.constexpr,
):
    program = tl.program_id(0)
    tiles_down = tl.cdiv(pixels, PIXELS)
    tiles_across = tl.cdiv(outputs, OUTPUTS)
    group_size = GROUPED * tiles_across
    first_down = (program // group_size) * GROUPED
    group_rows = min(tiles_down - first_down, GROUPED)
    tile_down = first_down + (program % group_size) % group_rows
    tile_across = (program % group_size) // group_rows

    pixel = tile_down * PIXELS + tl.arange(0, PIXELS)
    output = tile_across * OUTPUTS + tl.arange(0, OUTPUTS)
    exists = pixel < pixels

    total = convolved(
        source,
        weights,
        pixel,
        output,
        pixels,
        plane,
        height,
        width,
        channels,
        PADDED,
        ALIGNED,
        ACROSS,
        SIDE,
        PLANES_IN,
        DEPTH,
        INTERPRETED,
    )

    known_output = output < outputs
    factor = tl.load(scale + output, mask=known_output, other=0.0)
    bias = tl.load(shift + output, mask=known_output, other=0.0)
    value = total * factor[None, :] + bias[None, :]
    stored = exists[:, None] & known_output[None, :]
    if PLANES_OUT:
        offsets = in_planes(pixel, plane, outputs, ALIGNED)[:, None] + of_channels(output, plane, ALIGNED)[None, :]
    else:
        offsets = pixel.to(tl.int64)[:, None] * ACROSS + output[None, :]
        stored = exists[:, None] & (output < ACROSS)[None, :]  # the padding too: zeros, whatever it held
    if ADD_FIRST:
        value += tl.load(residual + offsets, mask=stored, other=0.0).to(tl.float32)
    value = tl.where(value < 0.0, 0.0, value)
    if HAS_RESIDUAL and not ADD_FIRST:
        value += tl.load(residual + offsets, mask=stored, other=0.0).to(tl.float32)
    tl.store(y + offsets, rounded(value, y.dtype.element_ty, INTERPRETED), mask=stored)


def convolve(source, planes, weights, scale, shift, side, residual=None, add_first=False, planes_out=True):
    """relu(conv · scale + shift) of images, with a residual added before or after the ReLU.

    ``planes`` is the images' shape (N, C, H, W). ``source`` holds them as planes where side is 1, or as rows of pixels,
    from ``to_pixels`` or from this function with ``planes_out`` false. ``weights`` are ``packed``, ``scale`` and
    ``shift`` float32 [O]. The residual is [N, O, H, W].
    """
    images, channels, height, width = planes
    outputs, pixels = scale.shape[0], images * height * width
    across = weights.shape[1]
    planes_in = source.dim() == 4
    shape = (images, outputs, height, width) if planes_out else (pixels, across)
    y = torch.empty(shape, dtype=source.dtype, device=source.device)
    if y.numel() == 0:
        return y

    def grid(chosen):
        return (triton.cdiv(pixels, chosen["PIXELS"]) * triton.cdiv(outputs, chosen["OUTPUTS"]),)

    conv_kernel[grid](
        source,
        weights,
        scale,
        shift,
        y if residual is None else residual,
        y,
        pixels,
        height * width,
        height,
        width,
        channels,
        outputs,
        PADDED=padded(channels),
        ALIGNED=aligned(height * width),
        ACROSS=across,
        SIDE=side,
        PLANES_IN=planes_in,
        PLANES_OUT=planes_out,
        HAS_RESIDUAL=residual is not None,
        ADD_FIRST=add_first,
        GROUPED=GROUP,
        DEPTH=depth_of(channels, source.element_size()),
        INTERPRETED=bool(triton.knobs.runtime.interpret),
    )
    return y
