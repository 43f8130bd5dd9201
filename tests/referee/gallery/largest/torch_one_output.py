"""Leaves out the second output."""


def prepare(x):
    return lambda: x.amax(-1)
