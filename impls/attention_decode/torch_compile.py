"""The eager formula through Inductor, with scale, mask and softmax in one kernel between the two products.

Memory-bound: B·S positions of both caches are read whatever the lengths. Predicted: ahead of eager where scores weigh
(G near D), level elsewhere.

Reached on nvidia-h200 at 968ac8c4: 332 µs for float16 B=64,H=64,G=8,S=4096,D=128,fill=ragged, 1.65 TB/s, 36 % of the
memory ceiling, 1.39 times as fast as torch_eager.
"""

import torch

from .torch_eager import attention_decode


def prepare(q, k, v, lengths):
    compiled = torch.compile(attention_decode, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")

    def run():
        return compiled(q, k, v, lengths)

    run()
    return run
