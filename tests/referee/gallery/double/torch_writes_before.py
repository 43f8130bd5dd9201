"""Right, and writes one element before the start of its input."""


def prepare(x):
    def run():
        x.as_strided((1,), (1,), x.storage_offset() - 1).fill_(1)
        return x * 2

    return run
