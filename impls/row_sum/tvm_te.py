"""TVM's sum over rows under its default schedule for reductions: a block a row.

Memory-bound: M·N elements read. Prediction: behind cuda_block by single loads; far behind where rows are few.

Reached on nvidia-h200 at 55bea610: 289 µs for float32 M=65536,N=1024, 931 GB/s, 20 % of the memory ceiling, 0.248 times
as fast as torch_eager.
"""

from tvm import topi

from .._tvm.build import built, call, placeholder


def expression(x):
    return topi.cast(topi.sum(topi.cast(x, "float32"), axis=-1), x.dtype)


def prepare(x):
    source = placeholder(x, "x")
    kernel = built([source], expression(source)) if x.numel() else None

    def run():
        y = x.new_empty(x.shape[:1])
        return call(kernel, y, x) if x.numel() else y.zero_()

    return run
