"""Leaves its output on another device: on a GPU the host's memory, on a CPU the device that has no memory."""


def prepare(x):
    return lambda: (x * 2).to("cpu" if x.is_cuda else "meta")
