"""FlagGems' rms_norm, a Triton program a row, held up to 4096 elements and read twice beyond; it writes 1/rms as well.

Memory-bound: 2·M·N elements, 3·M·N for rows over 4096. Prediction: level with triton_row for short rows.

Reached on nvidia-h200 at f9f505a9: 158 µs for float32 M=2048,N=32768, 3.40 TB/s, 80 % of the memory ceiling, 1.27 times
as fast as torch_eager.
"""

from flag_gems.ops.rms_norm import rms_norm_forward

EPSILON = 1e-6


def prepare(x, weight):
    def run():
        y, *_ = rms_norm_forward(x, [x.shape[-1]], weight, EPSILON)
        return y

    return run
