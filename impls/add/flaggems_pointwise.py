"""FlagGems' add, a Triton kernel that it generates for the layout; its function is called, and none of torch's
replaced.

Bound by memory: 2·N elements read, N written. Prediction: level with triton_block on the device.
"""

import flag_gems


def prepare(a, b):
    def run():
        return flag_gems.add(a, b)

    return run
