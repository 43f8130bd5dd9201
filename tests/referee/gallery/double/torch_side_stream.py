"""Works on a stream of its own that waits for nobody and that nobody waits for."""

import torch


def prepare(x):
    side = torch.cuda.Stream()

    def run():
        y = torch.empty_like(x)
        with torch.cuda.stream(side):
            torch.mul(x, 2, out=y)
        return y

    return run


def unsupported(dtype, **shape):
    return None if torch.cuda.is_available() else "streams need a GPU"
