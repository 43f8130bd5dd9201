"""Liger-Kernel's softmax, a Triton program a row with the whole row in registers.

Memory-bound: 2·M·N elements. The exponential is taken in the storage type, which Triton has for float32 alone.
Prediction: near triton_row for short rows; behind it for rows of 32768, which one program of 32 warps holds.

Reached on nvidia-h200 at f9f505a9: 129 µs for float32 M=8192,N=8192, 4.16 TB/s, 98 % of the memory ceiling, 2.18 times
as fast as torch_eager.
"""

from liger_kernel.ops.softmax import _softmax_forward


def unsupported(dtype, **shape):
    if dtype != "float32":
        return f"Liger's softmax takes the exponential in {dtype}, which Triton refuses: float32 alone"
    return None


def prepare(x):
    def run():
        y, *_ = _softmax_forward(x)
        return y

    return run
