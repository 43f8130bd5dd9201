"""Honest: one reduction whose result has names."""


def prepare(x):
    return lambda: x.max(-1)
