"""Right, with an output more than was asked for."""


def prepare(x):
    return lambda: (x * 2, x * 3)
