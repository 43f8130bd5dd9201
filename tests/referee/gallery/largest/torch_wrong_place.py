"""The second output is one off; the first is right."""


def prepare(x):
    return lambda: (x.amax(-1), (x.argmax(-1) + 1) % x.shape[-1])
