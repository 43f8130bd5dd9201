"""FlashAttention-2 in Triton, tiles through tensor descriptors, products by tl.dot, an online softmax in powers of two.

Compute-bound: 4·D FLOPs for a pair that a query sees and as much for half of the masked tiles on the diagonal; q and
the output cross DRAM once, k and v are read from L2 once for each block of 128 queries, 128 FLOP/B there. Hopper's
multiprocessor makes 16 exponentials and 4096 FLOPs of products a clock: the exponential of a pair takes half as long as
its products at D = 128 and as long at D = 64, and Triton's loop does not begin one before the other is done; a second
program on the multiprocessor fills a part of the gap. Predicted: 70 % of cuDNN at D = 128, less at D = 64. Float32 is
multiplied in three TF32 products.

Reached on nvidia-h200 at 968ac8c4: 1.00 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 550 TFLOP/s, 70 % of the
compute ceiling, 11.2 times as fast as torch_eager.
"""

from .._triton.attention import attention_flash, flash_attention, unsupported_size
from .mask import is_causal

__all__ = ["attention_flash", "prepare", "unsupported"]


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    return unsupported_size(dtype, D)


def prepare(q, k, v, causal):
    flag = is_causal(causal)

    def run():
        return flash_attention(q, k, v, flag)

    run()
    return run
