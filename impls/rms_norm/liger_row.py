"""Liger-Kernel's rms_norm as Llama rounds it, a Triton program a row that keeps the reciprocal root for the backward
pass.

Memory-bound: 2·M·N elements and 4 bytes a row. In 16 bits x / rms is rounded before the weight. Prediction: level with
triton_row.

Reached on nvidia-h200 at f9f505a9: 144 µs for float32 M=2048,N=32768, 3.73 TB/s, 88 % of the memory ceiling, 1.39 times
as fast as torch_eager.
"""

from liger_kernel.ops.rms_norm import rms_norm_forward

EPSILON = 1e-6


def prepare(x, weight):
    def run():
        y, *_ = rms_norm_forward(x.contiguous(), weight, EPSILON, 0.0, "llama", None)
        return y

    return run
