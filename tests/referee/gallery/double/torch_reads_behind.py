"""Reads one element past the end of its input and multiplies it by nothing."""


def prepare(x):
    def run():
        neighbours = x.as_strided((x.numel(),), (1,), x.storage_offset() + 1)
        return x * 2 + neighbours * 0

    return run
