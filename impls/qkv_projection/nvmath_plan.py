"""Three products by nvmath-python on cuBLASLt, each planned once.

Compute-bound for many tokens: 6·T·D·N FLOPs in three launches that read x three times. Prediction: level with eager on
the device.
"""

from .._nvmath.plan import planned, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x, wq, wk, wv):
    products = [planned(x, weight) for weight in (wq, wk, wv)]

    def run():
        return tuple(product() for product in products)

    return run
