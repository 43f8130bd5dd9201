"""Takes back the memory of the output before: what a caller still holds turns into scratch."""


def prepare(x):
    last = []

    def run():
        if last:
            last.pop().zero_()
        y = x * 2
        last.append(y)
        return y

    return run
