"""Compiles anew in the first timed call after it was prepared."""

import sys

import jax
import torch


def timed():
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "collect":
        frame = frame.f_back
    return frame is not None


def prepare(x):
    done = []

    def run():
        if timed() and not done:
            done.append(1)
            jax.jit(lambda y: y * 2)(1.0)
        return torch.mul(x, 2)

    return run
