"""Changes the number of threads that everybody else computes with."""

import torch


def prepare(x):
    def run():
        torch.set_num_threads(torch.get_num_threads() + 1)
        return x * 2

    return run
