"""One program a tile: loaded by rows, turned in registers and shared memory by tl.trans, stored by columns.

Bound by memory: M·N elements read and written, both coalesced: Triton chooses a layout for the load and another for the
store and moves the block between them through shared memory. Prediction: level with cuda_vec.

Reached on nvidia-h200 at 968ac8c4: 130 µs for float32 M=8192,N=8192, 4.14 TB/s, 97 % of the memory ceiling, 3.57 times
as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

configs = [
    triton.Config({"ROWS": 64, "COLUMNS": 64}, num_warps=8),
    triton.Config({"ROWS": 32, "COLUMNS": 128}, num_warps=8),
    triton.Config({"ROWS": 128, "COLUMNS": 64}, num_warps=8),
    triton.Config({"ROWS": 64, "COLUMNS": 64}, num_warps=4),
]


@triton.autotune(configs=configs, key=["M", "N", "itemsize"])
@triton.jit
def transpose_tile(x, y, row_stride, column_stride, M, N, itemsize, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tiles = tl.cdiv(N, COLUMNS)
    program = tl.program_id(0)
    rows = (program // tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = (program % tiles * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    from_x = (rows[:, None] < M) & (columns[None, :] < N)
    block = tl.load(x + rows[:, None] * row_stride + columns[None, :] * column_stride, mask=from_x)
    to_y = (columns[:, None] < N) & (rows[None, :] < M)
    tl.store(y + columns[:, None] * M + rows[None, :], tl.trans(block), mask=to_y)


def prepare(x):
    rows, columns = x.shape

    def grid(chosen):
        return (triton.cdiv(rows, chosen["ROWS"]) * triton.cdiv(columns, chosen["COLUMNS"]),)

    def run():
        y = torch.empty((columns, rows), dtype=x.dtype, device=x.device)
        if y.numel():
            transpose_tile[grid](x, y, *x.stride(), rows, columns, x.element_size())
        return y

    run()
    return run
