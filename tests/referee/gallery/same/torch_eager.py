"""Honest: a clone."""


def prepare(x):
    return lambda: x.clone()
