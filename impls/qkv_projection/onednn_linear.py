"""Three oneDNN inner products, on a CPU, the weights laid out beforehand as oneDNN reads them.

Compute-bound for many tokens: 6·T·D·N FLOPs. Prediction: level with eager, which asks oneDNN in bfloat16 and MKL in
float32.
"""

from .._onednn.linear import linear, transposed, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x, wq, wk, wv):
    weights = [transposed(weight) for weight in (wq, wk, wv)]

    def run():
        return tuple(linear(x, weight) for weight in weights)

    return run
