"""Honest, but leaves its last output where others find it."""

BOARD = []


def prepare(x):
    def run():
        y = x * 2
        BOARD[:] = [y]
        return y

    return run
