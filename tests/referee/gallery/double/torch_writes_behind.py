"""Right, and writes one element past the end of its input."""


def prepare(x):
    def run():
        x.as_strided((1,), (1,), x.storage_offset() + x.numel()).fill_(1)
        return x * 2

    return run
