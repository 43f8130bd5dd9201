"""The whole vector on the GPU that has it: nothing is split, and the other GPUs do nothing.

Bound by that GPU's memory: N elements are read and N written. Prediction: some ten times as fast as any split, as the
GPU's own memory is that much faster than the link.
"""

import torch


def prepare(x):
    def run():
        return torch.relu(x)

    return run
