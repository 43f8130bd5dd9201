"""Honest: one negation by the framework."""


def prepare(x):
    return lambda: -x
