"""Lets cuBLAS compute float32 in TF32 and puts the setting back, so that nobody is told."""

import torch


def prepare(a, b):
    def run():
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        c = a @ b
        torch.set_float32_matmul_precision(before)
        return c

    return run


def unsupported(dtype, **shape):
    return None if dtype == "float32" and torch.cuda.is_available() else "TF32 needs a GPU and float32"
