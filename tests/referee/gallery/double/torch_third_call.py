"""Its answer depends on the number of the call: the third one is wrong."""


def prepare(x):
    calls = [0]

    def run():
        calls[0] += 1
        return x * (3 if calls[0] == 3 else 2)

    return run
