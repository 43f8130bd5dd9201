"""The eager layer through Inductor: what stands between two products becomes one kernel, a template may take it in.

Scale, mask and softmax are one pass over the scores, three times less than eager; GELU, sums and norms join their
neighbours. The scores themselves still go through memory: Inductor replaces only attention that it recognises.
Predicted: eager less most of its passes, 1.3 to 1.8 times as fast.

Reached on nvidia-h200 at 968ac8c4: 1.19 ms for bfloat16 B=32,S=512,D=1024,H=16,F=4096, 360 TFLOP/s, 46 % of the compute
ceiling, 1.79 times as fast as torch_eager.
"""

import torch

from .torch_eager import causal_mask, layer


def prepare(x, heads, **p):
    count, hidden = int(heads), causal_mask(x)
    compiled = torch.compile(layer, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")

    def run():
        return compiled(x, p, count, hidden)

    run()
    return run
