"""The backward pass of layer_norm (CENTRED) and rms_norm: grad_x row by row, the parameters' gradients in two stages.

With h = (x - mean) · rstd (mean = 0 in rms_norm) and g = grad · weight, grad_x = (g - [CENTRED] avg(g) - h · avg(g·h))
· rstd over a row, grad_weight = sum of grad · h and grad_bias = sum of grad over the rows. Programs stay and walk over
rows; each adds up its rows' share of the parameters' gradients in registers and writes one row of partial sums, which a
second kernel adds in a fixed order. Rows that do not fit are read twice: a program a row for the averages, then tiles
of columns. Strided inputs are read as they lie.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .rounding import rounded

LONGEST_HELD = 8192  # elements of a row whose sums stay in registers beside it
ELEMENTS_PER_THREAD = 8
CHUNK = 4096  # of a row that is not held, at a time
COLUMNS = 1024  # a tile of one
SUM_COLUMNS = 64
SUM_COLUMNS_INTERPRETED = 1024  # the interpreter is slow by the program, not by the element
SUM_PARTS = 32
ROWS_EACH = 8  # at least, of a program: fewer would write as much in partial sums as they read
_UNKNOWN_PROCESSORS = 1  # a CPU, where the interpreter takes one program after the other


@triton.jit
def norm_backward_held(
    grad, x, weight, mean, rstd, grad_x, partials, M, N, grad_row, grad_column, x_row, x_column,
    CENTRED: tl.constexpr, INTERPRETED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """partials [kinds, programs, N]: of the weight, then of the bias."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    weight_sums = tl.zeros((BLOCK,), tl.float32)
    bias_sums = tl.zeros((BLOCK,), tl.float32)
    place = program.to(tl.int64)
    for _ in range(program, M, programs):
        g = tl.load(grad + place * grad_row + columns * grad_column, mask=inside, other=0.0).to(tl.float32)
        h = tl.load(x + place * x_row + columns * x_column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + place)
        if CENTRED:
            h = h - tl.load(mean + place)
            bias_sums += g
        h = h * scale  # what lies outside is multiplied by a gradient of 0
        weight_sums += g * h
        g = g * w
        result = g - h * (tl.sum(g * h, axis=0) / N)
        if CENTRED:
            result -= tl.sum(g, axis=0) / N
        tl.store(
            grad_x + place * N + columns, rounded(result * scale, grad_x.dtype.element_ty, INTERPRETED), mask=inside
        )
        place += programs
    part = partials + program.to(tl.int64) * N + columns
    tl.store(part, weight_sums, mask=inside)
    if CENTRED:
        tl.store(part + programs.to(tl.int64) * N, bias_sums, mask=inside)


@triton.jit
def norm_backward_averages(
    grad, x, weight, mean, rstd, averages, N, grad_row, grad_column, x_row, x_column,
    CENTRED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """averages [M, 2]: of g·h and of g."""
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(rstd + row)
    centre = tl.load(mean + row) if CENTRED else 0.0
    slopes = tl.zeros((BLOCK,), tl.float32)
    levels = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        columns = (first + tl.arange(0, BLOCK)).to(tl.int64)
        inside = columns < N
        g = tl.load(grad + row * grad_row + columns * grad_column, mask=inside, other=0.0).to(tl.float32)
        h = tl.load(x + row * x_row + columns * x_column, mask=inside, other=0.0).to(tl.float32)
        g = g * tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        slopes += g * ((h - centre) * scale)
        levels += g
    tl.store(averages + 2 * row, tl.sum(slopes, axis=0) / N)
    tl.store(averages + 2 * row + 1, tl.sum(levels, axis=0) / N)


@triton.jit
def norm_backward_columns(
    grad, x, weight, mean, rstd, averages, grad_x, partials, M, N, grad_row, grad_column, x_row, x_column,
    CENTRED: tl.constexpr, INTERPRETED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile of columns, over every so many rows as the grid has parts."""
    part = tl.program_id(0)
    parts = tl.num_programs(0)
    columns = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < N
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    weight_sums = tl.zeros((BLOCK,), tl.float32)
    bias_sums = tl.zeros((BLOCK,), tl.float32)
    place = part.to(tl.int64)
    for _ in range(part, M, parts):
        g = tl.load(grad + place * grad_row + columns * grad_column, mask=inside, other=0.0).to(tl.float32)
        h = tl.load(x + place * x_row + columns * x_column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + place)
        if CENTRED:
            h = h - tl.load(mean + place)
            bias_sums += g
        h = h * scale
        weight_sums += g * h
        result = g * w - h * tl.load(averages + 2 * place)
        if CENTRED:
            result -= tl.load(averages + 2 * place + 1)
        tl.store(
            grad_x + place * N + columns, rounded(result * scale, grad_x.dtype.element_ty, INTERPRETED), mask=inside
        )
        place += parts
    out = partials + part.to(tl.int64) * N + columns
    tl.store(out, weight_sums, mask=inside)
    if CENTRED:
        tl.store(out + parts.to(tl.int64) * N, bias_sums, mask=inside)


@triton.jit
def norm_backward_sums(partials, sums, parts, N, INTERPRETED: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """sums [kinds, N] of partials [kinds, parts, N]; the kind is the grid's second number."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    kind = tl.program_id(1).to(tl.int64)
    total = tl.zeros((PARTS, COLUMNS), tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        places = (kind * parts + part)[:, None] * N + columns[None, :]
        total += tl.load(partials + places, mask=(part < parts)[:, None] & (columns < N)[None, :], other=0.0)
    result = rounded(tl.sum(total, axis=0), sums.dtype.element_ty, INTERPRETED)
    tl.store(sums + kind * N + columns, result, mask=columns < N)


def processors(tensor: torch.Tensor) -> int:
    if not tensor.is_cuda:
        return _UNKNOWN_PROCESSORS
    return int(torch.cuda.get_device_properties(tensor.device).multi_processor_count)


def norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor | None, rstd: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Fresh gradients of x [M, N], of weight [N] and, where there is a mean [M], of the bias [N]."""
    rows, length = x.shape
    centred = mean is not None
    kinds = 2 if centred else 1
    grad_x = torch.empty((rows, length), dtype=x.dtype, device=x.device)
    sums = torch.empty((kinds, length), dtype=x.dtype, device=x.device)
    held = length <= LONGEST_HELD
    block = triton.next_power_of_2(max(length, 1)) if held else COLUMNS
    warps = min(max(block // (32 * ELEMENTS_PER_THREAD), 1), 32)
    across = 1 if held else triton.cdiv(length, COLUMNS)
    parts = min(triton.cdiv(processors(x) * 32 // warps, across), triton.cdiv(rows, ROWS_EACH))
    partials = torch.empty((kinds, max(parts, 1), length), dtype=torch.float32, device=x.device)
    fixed = {"CENTRED": centred, "INTERPRETED": bool(triton.knobs.runtime.interpret), "num_warps": warps}
    saved = (rstd if mean is None else mean, rstd)
    strides = (*grad.stride(), *x.stride())
    if rows and held:
        norm_backward_held[(parts,)](
            grad, x, weight, *saved, grad_x, partials, rows, length, *strides, **fixed, BLOCK=block
        )
    elif rows:
        averages = torch.empty((rows, 2), dtype=torch.float32, device=x.device)
        norm_backward_averages[(rows,)](
            grad, x, weight, *saved, averages, length, *strides, CENTRED=centred, BLOCK=CHUNK, num_warps=8
        )
        norm_backward_columns[(parts, across)](
            grad, x, weight, *saved, averages, grad_x, partials, rows, length, *strides, **fixed, BLOCK=block
        )
    tile = SUM_COLUMNS_INTERPRETED if fixed["INTERPRETED"] else SUM_COLUMNS
    norm_backward_sums[(triton.cdiv(length, tile), kinds)](
        partials, sums, parts, length, fixed["INTERPRETED"], PARTS=SUM_PARTS, COLUMNS=tile, num_warps=4
    )
    return grad_x, *sums.unbind(0)
