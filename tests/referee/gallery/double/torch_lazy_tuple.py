"""Returns a tuple that computes its only member when somebody unpacks it."""


class Lazy(tuple):
    def __iter__(self):
        (x,) = super().__iter__()
        yield x * 2


def prepare(x):
    return lambda: Lazy((x,))
