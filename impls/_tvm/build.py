"""A tensor expression, scheduled for the GPU by TVM's default rules and compiled for one shape, called with torch's
tensors.

TVM's FFI reads a tensor through DLPack and launches on torch's current stream.
"""

import torch
import tvm
from tvm import te
from tvm.s_tir import dlight

from .._torch.aligned import aligned

ALIGNED = 64  # bytes: what TVM assumes of every address, and checks
RULES = (dlight.gpu.Reduction, dlight.gpu.GeneralReduction, dlight.gpu.Fallback)


def target():
    """The GPU at hand, with what the rules ask of it."""
    major, minor = torch.cuda.get_device_capability()
    limits = {"max_threads_per_block": 1024, "max_num_threads": 1024, "max_shared_memory_per_block": 49152}
    chip = {"kind": "cuda", "arch": f"sm_{major}{minor}", "thread_warp_size": 32, **limits}
    return tvm.target.Target(chip, host="llvm")


def placeholder(tensor, name):
    return te.placeholder(tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."), name=name)


def built(inputs, output, chosen=None):
    """A function of the inputs and the output, which it writes."""
    chosen = chosen or target()
    module = tvm.IRModule({"main": te.create_prim_func([*inputs, output]).with_attr("global_symbol", "main")})
    with chosen:
        scheduled = dlight.ApplyDefaultSchedule(*(rule() for rule in RULES))(module)
    return tvm.compile(scheduled, target=chosen)["main"]


def call(kernel, y, *tensors):
    """``y`` of ``kernel(*tensors, y)``; nothing is launched for an empty one."""
    if y.numel():
        kernel(*(aligned(tensor, ALIGNED) for tensor in tensors), y)
    return y
