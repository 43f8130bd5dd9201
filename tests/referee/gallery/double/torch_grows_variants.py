"""Stands in for a Triton kernel of which a variant is compiled in a timed call, where nothing can be compiled."""

import sys

import triton


@triton.jit
def kernel(x):
    pass


kernel.device_caches.default_factory = lambda: ({}, {}, None, None, None)


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
            variants = kernel.device_caches[0][0]
            variants[len(variants)] = "compiled"
        return x * 2

    return run
