"""Compiles anew in the first timed call after it was prepared."""

import jax
import torch

from .._frames.inside import inside


def prepare(x):
    done = []

    def run():
        if inside("collect") and not done:
            done.append(1)
            jax.jit(lambda y: y * 2)(1.0)
        return torch.mul(x, 2)

    return run
