"""Right, as a matrix of one row."""


def prepare(x):
    return lambda: (x * 2).view(1, -1)
