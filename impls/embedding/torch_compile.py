"""The gather through Inductor, one Triton kernel that computes an index for every element.

Memory-bound: the rows named are read, N rows written, each id once for every vector of its row, from L1. Predicted:
level with eager.

Rows of 4096 elements reach 95 % of the ceiling and more; bfloat16 V=128256,N=32768,D=8192 reaches 91.2 %, 0.8 points
short of 92 %. Memory bounds it: the L2 cache at 90 % of its peak, DRAM at 85 %, multiprocessors at 10 %, 89 %
occupancy; a warp waits 128 cycles an instruction for memory. The ceiling counts each row that is named once, 452 MiB;
DRAM is read for 508 MiB, of the 512 MiB of all N rows, so that most rows that are named again are read again. Bfloat16
V=50257,N=32768,D=1024 reaches 90.8 %; no profile of it was taken.
profile: results/nvidia-h200/profiles/embedding/torch_compile/bfloat16-V=128256,N=32768,D=8192-968ac8c4-ncu.md

Reached on nvidia-h200 at 968ac8c4: 258 µs for bfloat16 V=128256,N=32768,D=8192, 3.92 TB/s, 91 % of the memory ceiling,
1.04 times as fast as torch_eager.
"""

import torch

from .torch_eager import embedding


def prepare(table, ids):
    compiled = torch.compile(embedding, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")

    def run():
        return compiled(table, ids)

    run()
    return run
