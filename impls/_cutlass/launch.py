"""CuTe DSL kernels compiled for a dtype, called with torch's tensors through TVM's FFI, which takes torch's current
stream.
"""

import functools

import cutlass
import torch
from cutlass import cute

from .._torch.aligned import aligned

BLOCK = 256
WARP = 32
BYTES = 16  # the widest access of a thread
TYPES = {torch.float32: cutlass.Float32, torch.float16: cutlass.Float16, torch.bfloat16: cutlass.BFloat16}


@functools.cache
def compiled(host, dtype, ranks):
    """``host(*tensors, stream)`` for tensors of these ranks, dense and aligned, of any size. Compiled once."""
    number = TYPES[dtype]
    return cute.compile(
        host,
        *(_stand_in(number, rank) for rank in ranks),
        cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


def _stand_in(number, rank):
    sizes = tuple(cute.sym_int64() for _ in range(rank))
    if rank == 1:
        return cute.runtime.make_fake_tensor(number, sizes, stride=(1,), assumed_align=BYTES)
    stride = (cute.sym_int64(), 1)
    return cute.runtime.make_fake_tensor(number, sizes, stride=stride, assumed_align=number.width // 8)


def elementwise(host, *vectors):
    """A fresh vector of ``host(inputs, output)``."""
    sources = [aligned(vector, BYTES) for vector in vectors]
    y = torch.empty_like(sources[0])
    if y.numel():
        compiled(host, y.dtype, (1,) * (len(sources) + 1))(*sources, y)
    return y
