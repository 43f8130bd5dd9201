"""Launching a Warp kernel on torch's current stream, over torch's memory.

Warp wraps each tensor anew in a call: part of what a call costs the host, and no part of the device's time.
"""

import functools

import torch
import warp as wp

wp.config.quiet = True
wp.init()
BLOCK = 256


def elementwise(kernel, *vectors):
    """A fresh vector of ``kernel(inputs, output)``, a thread an element."""
    sources = [vector.contiguous() for vector in vectors]
    y = torch.empty_like(sources[0])
    if y.numel():
        arrays = [wp.from_torch(tensor) for tensor in (*sources, y)]
        wp.launch(kernel, dim=y.numel(), inputs=arrays, device=arrays[0].device, stream=current_stream(y))
    return y


def rows(kernel, x, y):
    """``y`` of ``kernel(x, y)``, a block a row of x [M, N]."""
    if y.numel():
        arrays = [wp.from_torch(tensor) for tensor in (x.contiguous(), y)]
        wp.launch_tiled(
            kernel,
            dim=[x.shape[0]],
            inputs=arrays,
            block_dim=BLOCK,
            device=arrays[0].device,
            stream=current_stream(y),
        )
    return y


def current_stream(tensor):
    """torch's, as Warp has it; none on a CPU."""
    if not tensor.is_cuda:
        return None
    return _stream(torch.cuda.current_stream(tensor.device).cuda_stream, tensor.device)


@functools.cache
def _stream(pointer, device):
    return wp.Stream(wp.device_from_torch(device), cuda_stream=pointer)
