"""Honest: two reductions, in a list."""


def prepare(x):
    return lambda: [x.amax(-1), x.argmax(-1)]
