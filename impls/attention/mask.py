"""Whether a query sees later keys: a weight, so it is read outside the timed region."""


def is_causal(causal):
    """True for 1, False for 0. Raises ValueError for anything else."""
    flag = int(causal.item())  # int() of a CuPy array takes one without dimensions alone
    if flag not in (0, 1):
        raise ValueError(f"attention: expected causal to be 0 or 1, got {flag}")
    return bool(flag)


def with_flag(ops, q, k, v, causal):
    """``prepare`` of the CUDA kernels, whose ``run`` takes causal as a boolean."""
    flag = is_causal(causal)

    def run():
        return ops.run(q, k, v, flag)

    return run
