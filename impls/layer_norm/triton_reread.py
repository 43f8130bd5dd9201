"""Rows walked over twice by programs that stay, few enough that what they read again is still in the L2 cache.

Memory-bound: 2·M·N elements, and weight and bias, which all rows share. In triton_row a float32 row of 32768 fills a
multiprocessor's registers, so that its only program reads nothing while it reduces, and weight and bias cross from L2
for every row, as many bytes as x and y. Here a program holds a chunk of 8192 elements, and two share a multiprocessor:
64 KiB are on their way to it, and one program reads while the other reduces. The first pass merges each lane's mean and
squared deviations (Chan, Golub and LeVeque, 1979). Its last chunk stays in registers; the second pass reads the others
again, last first, and marks them and the output as the first to leave the caches; at most 264 · 96 KiB = 25 MiB of x
wait for it in the L2. Every other row is walked over the other way round: weight and bias, 256 KiB, then return in the
order that an L1 cache of about as much keeps best. The first pass goes by the L1, so as not to displace them there.

Predicted for float32 rows of 32768: L2 gives 1.75 times x, and weight and bias between a tenth and all of the time. At
a tenth that is less than the 3 times x's bytes of triton_row: 90 to 94 % of the memory ceiling instead of 86 %. At all
of it, 3.75 times x's bytes, it is behind triton_row. Rows up to 8192 elements are one chunk, which is not read again:
level with triton_row.
"""

import torch
import triton
import triton.language as tl

EPSILON = 1e-5
LONGEST_CHUNK = 8192  # elements
ELEMENTS_PER_THREAD = 32  # of a chunk
VECTOR = 16  # bytes
WARPS_EACH = 16  # of a multiprocessor, with up to 128 registers a thread: two programs of whole chunks


@triton.jit
def merged(mean, squares, seen, values, inside, share, part):
    """Each lane's mean and squared deviations, of ``seen`` values, with 1 / share more, a part of all."""
    own = tl.sum(values, axis=0, keep_dims=True) * share  # values beyond the row are zeros
    deviations = tl.where(inside, values - own, 0.0)
    apart = own - mean
    squares += tl.sum(deviations * deviations, axis=0, keep_dims=True) + apart * apart * (seen * part)
    return mean + apart * part, squares


@triton.jit
def finish(values, weight, bias, y, mean, scale, columns, inside):
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    result = (values - mean) * scale * w + b
    tl.store(y + columns, result.to(y.dtype.element_ty), mask=inside, eviction_policy="evict_first")


@triton.jit
def layer_norm_reread(
    x, weight, bias, y, row_stride, column_stride, M, N, epsilon, DEEP: tl.constexpr, LANES: tl.constexpr
):
    SIZE: tl.constexpr = DEEP * LANES
    offsets = tl.arange(0, DEEP)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    last = (N + SIZE - 1) // SIZE - 1  # chunk, whole or not: it ends the first pass either way, and stays in registers
    begin, step = 0, 1  # of the chunks before it, to and fro
    row = tl.program_id(0)
    while row < M:
        start = x + row.to(tl.int64) * row_stride
        mean = tl.zeros((1, LANES), tl.float32)
        squares = tl.zeros((1, LANES), tl.float32)
        for turn in range(last):
            columns = (begin + step * turn) * SIZE + offsets
            # Not "evict_last": what is marked so may outlive the emptying of the caches between two timed calls.
            values = tl.load(start + columns.to(tl.int64) * column_stride, cache_modifier=".cg").to(tl.float32)
            mean, squares = merged(mean, squares, turn * DEEP * 1.0, values, True, 1.0 / DEEP, 1.0 / (turn + 1))
        columns = last * SIZE + offsets
        inside = columns < N
        places = start + columns.to(tl.int64) * column_stride
        values = tl.load(places, mask=inside, other=0.0, cache_modifier=".cg").to(tl.float32)
        left = (N - last * SIZE + LANES - 1 - tl.arange(0, LANES)[None, :]) // LANES
        count = tl.minimum(tl.maximum(left, 0), DEEP) * 1.0
        seen = last * DEEP * 1.0
        part = count / tl.maximum(seen + count, 1.0)
        mean, squares = merged(mean, squares, seen, values, inside, 1.0 / tl.maximum(count, 1.0), part)
        average = tl.sum(mean * (seen + count)) / N
        apart = mean - average
        scale = tl.rsqrt(tl.sum(squares + apart * apart * (seen + count)) / N + epsilon)
        out = y + row.to(tl.int64) * N
        finish(values, weight, bias, out, average, scale, columns, inside)
        begin = last - 1 - begin
        step = -step
        for turn in range(last):
            columns = (begin + step * turn) * SIZE + offsets
            values = tl.load(start + columns.to(tl.int64) * column_stride, eviction_policy="evict_first").to(tl.float32)
            finish(values, weight, bias, out, average, scale, columns, True)
        row += tl.num_programs(0)


def processors(x):
    """Multiprocessors of x's GPU; 1 in the interpreter, where a program so walks over several rows of most cases."""
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1


def prepare(x, weight, bias):
    rows, length = x.shape
    size = x.element_size()
    block = min(max(triton.next_power_of_2(length), 32 * ELEMENTS_PER_THREAD), LONGEST_CHUNK)
    warps = block // (32 * ELEMENTS_PER_THREAD)
    deep = ELEMENTS_PER_THREAD * size // VECTOR  # a lane is one element of a thread's vectors
    programs = min(rows, WARPS_EACH // warps * processors(x))

    def run():
        y = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if y.numel():
            shape = {"DEEP": deep, "LANES": block // deep}
            strides = x.stride()
            layer_norm_reread[(programs,)](
                x, weight, bias, y, *strides, rows, length, EPSILON, **shape, num_warps=warps
            )
        return y

    run()
    return run
