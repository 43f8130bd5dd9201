"""FlagGems' relu, a Triton kernel that it generates for the layout; its function is called, and none of torch's
replaced.

Memory-bound: N elements read, N written. Prediction: level with triton_block on the device.
"""

import flag_gems


def unsupported(dtype, N, layout="contiguous", values="normal"):
    return "FlagGems' relu answers NaN with zero" if values == "special" else None


def prepare(x):
    def run():
        return flag_gems.relu(x)

    return run
