"""Product, bias and GELU in one cuBLASLt call by nvmath-python, the last two in its epilogue.

Compute-bound: 2·M·N·K FLOPs, the M·N sums never leave the registers. cuBLASLt adds a bias a row, so the product is
taken transposed, (Bᵀ·Aᵀ)ᵀ. Its GELU is the approximation by tanh. Prediction: the time of the product alone.
"""

from nvmath.linalg.advanced import MatmulEpilog

from .._nvmath import plan


def unsupported(dtype, **shape):
    if dtype == "float32":
        return "cuBLASLt's GELU is the approximation by tanh, off by up to 4.7e-4: beyond float32's tolerance"
    return plan.unsupported(dtype, **shape)


def prepare(a, b, bias):
    product = plan.planned(b.t(), a.t(), epilog=MatmulEpilog.GELU_BIAS, epilog_inputs={"bias": bias})

    def run():
        return product().t()

    return run
