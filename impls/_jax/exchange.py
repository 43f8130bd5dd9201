"""A function that XLA compiles, on torch's tensors: they cross by DLPack in every call, and with them the order of
work.

XLA launches on streams of its own, which wait for nothing that torch has queued. The exchange is what orders the two
without stopping the host: importing a tensor makes XLA wait for torch's current stream (``Tensor.__dlpack__`` records
an event there), exporting an array makes torch's current stream wait for XLA (``Array.__dlpack__``). So a timer and a
reader on the current stream see the work as if it had been launched there. It is done for every input of every call,
because it must come after what is queued at the call; what it costs the host is in the call's time and not in the
device's.
"""

import jax
import jax.numpy as jnp
import torch

from .._torch.aligned import aligned

ALIGNED = 64  # bytes: XLA compiles loads of 16, and wants more of a CPU's buffers

# Class indices and row numbers are int64, which JAX would cut to 32 bits. What is floating has its dtype from torch.
jax.config.update("jax_enable_x64", True)


def compiled(function, *tensors):
    """``run`` for ``function`` of JAX arrays, compiled for these tensors; what it returns is torch's."""
    jitted = jax.jit(function)

    def run():
        return as_tensors(jitted(*map(as_array, tensors)), tensors[0].device)

    run()
    return run


def as_array(tensor):
    """The same memory, or a copy where XLA cannot read it as it lies: with gaps, or off its alignment."""
    if tensor.numel() == 0:  # DLPack has no address for it
        return jnp.zeros(tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))
    return jax.dlpack.from_dlpack(aligned(tensor, ALIGNED))


def as_tensors(outputs, device):
    """The same memory as torch's, in order behind XLA's work on torch's current stream; a CPU's work is waited for."""
    if isinstance(outputs, tuple):
        return tuple(as_tensors(output, device) for output in outputs)
    if outputs.size == 0:
        return torch.empty(outputs.shape, dtype=getattr(torch, outputs.dtype.name), device=device)
    if device.type == "cpu":
        outputs = outputs.block_until_ready()
    return torch.from_dlpack(outputs)
