"""Two products, GELU between them, and an all-reduce of the partial sums when both are done.

Compute-bound products, 4·T·M·F/W FLOPs a rank; the all-reduce sends 2 (W-1)/W of y, and nothing is computed meanwhile.

Reached on nvidia-h200 at 968ac8c4: 1.45 ms for bfloat16 W=1,T=4096,M=4096,F=16384, 757 TFLOP/s, 97 % of the compute
ceiling.
"""

import torch
from torch import distributed


def hidden(x, up, bias):
    return torch.nn.functional.gelu(torch.addmm(bias, x, up))


def prepare(x, up, bias, down):
    def run():
        y = torch.mm(hidden(x, up, bias), down)
        distributed.all_reduce(y)
        return y

    return run
