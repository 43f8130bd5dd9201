"""Honest: changes a setting for its own work and puts it back."""

import torch


def prepare(x):
    def run():
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        y = x * 2
        torch.set_float32_matmul_precision(before)
        return y

    return run
