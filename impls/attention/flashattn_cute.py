"""FlashAttention 4's kernel for Hopper in CuTe DSL: warp-specialised wgmma over TMA, scores and weights in registers.

Compute-bound: 4·D FLOPs for each pair of a query and a key that it sees; q, k, v and the output cross DRAM once.
Prediction: before cuDNN's and torch's FlashAttention 2, near two thirds of the matmul ceiling.

Reached on nvidia-h200 at 55bea610: 736 µs for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 747 TFLOP/s, 93 % of the compute
ceiling, 15.3 times as fast as torch_eager.
"""

from flash_attn.cute.interface import flash_attn_func

from .mask import is_causal

PACK = 8  # elements of 16 bits in the 16 bytes that TMA counts strides in


def unsupported(dtype, B, H, S, D, causal, layout="contiguous"):
    if dtype == "float32":
        return "FlashAttention 4 takes 16-bit types"
    if B == 0:
        return "FlashAttention 4 takes no batch of nothing"
    return f"FlashAttention 4 takes heads of a multiple of {PACK} elements, D={D}" if D % PACK else None


def prepare(q, k, v, causal):
    flag = is_causal(causal)

    def run():
        # It takes [B, S, H, D] in any strides whose last is 1.
        parts = [x.transpose(1, 2) if x.stride(-1) == 1 else x.contiguous().transpose(1, 2) for x in (q, k, v)]
        out, *_ = flash_attn_func(*parts, causal=flag)
        return out.transpose(1, 2)

    return run
