"""FlagGems' add, a Triton kernel that it generates for the layout; its function is called, and none of torch's
replaced.

Bound by memory: 2·N elements read, N written. Prediction: level with triton_block on the device.

Reached on nvidia-h200 at f9f505a9: 234 µs for float16 N=134217728, 3.44 TB/s, 78 % of the memory ceiling, 0.769 times
as fast as torch_eager.
"""

import flag_gems


def prepare(a, b):
    def run():
        return flag_gems.add(a, b)

    return run
