"""A copy with torch's lazy minus on it: whoever reads it negates."""

import torch


def prepare(x):
    return lambda: torch._neg_view(x.clone())
