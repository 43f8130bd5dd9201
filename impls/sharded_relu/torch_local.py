"""The whole vector on the GPU that has it: nothing is split, and the other GPUs do nothing.

Bound by that GPU's memory: N elements are read and N written. Prediction: some ten times as fast as any split, as the
GPU's own memory is that much faster than the link.

Reached on nvidia-h200 at 968ac8c4: 34.6 µs for float32 W=1,N=16777216, 3.88 TB/s, 91 % of the memory ceiling, 2.00
times as fast as torch_eager (unstable).
"""

import torch


def prepare(x):
    def run():
        return torch.relu(x)

    return run
