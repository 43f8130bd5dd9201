"""Keeps a copy of every output."""


def prepare(x):
    hoard = []

    def run():
        y = x * 2
        hoard.append(y.clone())
        return y

    return run
