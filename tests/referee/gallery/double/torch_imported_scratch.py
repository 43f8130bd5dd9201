"""Makes the scratch of its calls when its file is imported."""

import torch

SCRATCH = torch.empty(16 << 20, dtype=torch.uint8, device="cuda" if torch.cuda.is_available() else "cpu")


def prepare(x):
    def run():
        SCRATCH[:1000].fill_(1)
        return x * 2

    return run
