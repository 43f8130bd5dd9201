"""Honest: one operator of the framework."""

import torch


def prepare(x):
    return lambda: torch.exp(x)
