"""A 16-byte pack of each input a thread in CUTLASS's CuTe DSL, by a division of the vectors' layout.

Memory-bound: 2·N elements read, N written. Prediction: level with cuda_vec.

Reached on nvidia-h200 at ea3b5250: 181 µs for float16 N=134217728, 4.46 TB/s, 101 % of the memory ceiling, 0.998 times
as fast as torch_eager.
"""

import cutlass
from cutlass import cute

from .._cutlass.launch import BLOCK, elementwise
from .._cutlass.packs import blocks, lanes, my_pack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, y: cute.Tensor):
    size, step, i = cute.size(a), lanes(a), my_pack()
    if (i + 1) * step <= size:
        first = cute.zipped_divide(a, (step,))[(None, i)].load().to(cutlass.Float32)
        second = cute.zipped_divide(b, (step,))[(None, i)].load().to(cutlass.Float32)
        cute.zipped_divide(y, (step,))[(None, i)].store((first + second).to(y.element_type))
    else:
        for j in range(i * step, size):
            y[j] = (a[j].to(cutlass.Float32) + b[j].to(cutlass.Float32)).to(y.element_type)


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, y: cute.Tensor, stream):
    add_kernel(a, b, y).launch(grid=(blocks(a), 1, 1), block=(BLOCK, 1, 1), stream=stream)


def prepare(a, b):
    def run():
        return elementwise(add, a, b)

    return run
