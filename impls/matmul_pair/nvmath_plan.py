"""Two products by nvmath-python on cuBLASLt, each planned once.

Compute-bound: 4·M·N·K FLOPs in two launches. Prediction: level with eager on the device.
"""

from .._nvmath.plan import planned, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(a1, b1, a2, b2):
    first, second = planned(a1, b1), planned(a2, b2)

    def run():
        return first(), second()

    return run
