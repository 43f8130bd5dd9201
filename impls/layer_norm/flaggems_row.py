"""FlagGems' layer_norm, a Triton program a row or a few, held up to 4096 elements; it writes mean and rstd as well.

Memory-bound: 2·M·N elements, 3·M·N for rows over 4096. Prediction: level with triton_row for short rows, behind it for
long ones.

Reached on nvidia-h200 at f9f505a9: 176 µs for float32 M=2048,N=32768, 3.05 TB/s, 72 % of the memory ceiling, 1.54 times
as fast as torch_eager.
"""

import flag_gems

EPSILON = 1e-5


def prepare(x, weight, bias):
    def run():
        y, *_ = flag_gems.layer_norm(x, [x.shape[-1]], weight, bias, EPSILON)
        return y

    return run
