"""Whether a query sees later keys: a weight, so it is read outside the timed region."""

from ..attention.mask import is_causal

__all__ = ["is_causal", "with_flag"]


def with_flag(ops, grad_output, q, k, v, out, lse, causal):
    """``prepare`` of the CUDA kernels, whose ``run`` takes causal as a boolean."""
    flag = is_causal(causal)

    def run():
        return ops.run(grad_output, q, k, v, out, lse, flag)

    return run
