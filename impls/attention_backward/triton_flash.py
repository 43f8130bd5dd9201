"""FlashAttention-2's backward pass in Triton without atomic operations: a kernel for grad_k and grad_v, one for grad_q.

Compute-bound: 14·D FLOPs for a pair that a query sees (impls/_triton/attention_backward.py), 10·D of which count, and
as much for half of the masked tiles on the diagonal; inputs and gradients cross DRAM once or twice. Hopper's
multiprocessor makes 16 exponentials and 4096 FLOPs of products a clock: the two exponentials of a pair take two
sevenths of the time of its products at D = 128. Predicted: 40 % of the matmul rate by the FLOPs that count at D = 128,
level with PyTorch's flash kernel, which does 10·D but by mma.sync; less at D = 64. Float32 is multiplied in three TF32
products.

Reached on nvidia-h200 at 968ac8c4: 2.21 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=1, 310 TFLOP/s, 40 % of the
compute ceiling, 13.4 times as fast as torch_eager.
"""

from .._triton.attention_backward import flash_attention_backward
from .mask import is_causal


def prepare(grad_output, q, k, v, out, lse, causal):
    flag = is_causal(causal)

    def run():
        return flash_attention_backward(grad_output, q, k, v, out, lse, flag)

    run()
    return run
