"""A 16-byte pack a thread in CUTLASS's CuTe DSL, by a division of the vector's layout.

Memory-bound: N elements read, N written. Prediction: level with cuda_vec4.

Reached on nvidia-h200 at ea3b5250: 250 µs for float32 N=134217728, 4.30 TB/s, 101 % of the memory ceiling, 1.00 times
as fast as torch_eager.
"""

import cutlass
from cutlass import cute

from .._cutlass.launch import BLOCK, elementwise
from .._cutlass.packs import blocks, lanes, my_pack


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor):
    size, step, i = cute.size(x), lanes(x), my_pack()
    if (i + 1) * step <= size:
        value = cute.zipped_divide(x, (step,))[(None, i)].load().to(cutlass.Float32)
        rectified = cute.where(value < 0.0, cute.full_like(value, 0.0), value)  # NaN is not below zero
        cute.zipped_divide(y, (step,))[(None, i)].store(rectified.to(y.element_type))
    else:
        for j in range(i * step, size):
            one = x[j].to(cutlass.Float32)
            if one < 0.0:
                one = cutlass.Float32(0.0)
            y[j] = one.to(y.element_type)


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, stream):
    relu_kernel(x, y).launch(grid=(blocks(x), 1, 1), block=(BLOCK, 1, 1), stream=stream)


def prepare(x):
    def run():
        return elementwise(relu, x)

    return run
