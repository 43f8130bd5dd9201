"""A JAX function lowered to StableHLO and compiled by IREE, on torch's tensors.

IREE's device works on a stream of its own, which it does not hand out, and its DLPack takes no stream either. So the
host waits for torch's stream before a call, and IREE waits for its own before it returns: the order is right, the call
costs two stops of the host, and where IREE launches several kernels the gaps between them hold the host's time.
"""

import functools

import iree.compiler
import iree.runtime
import jax
import torch

from .._torch.aligned import aligned

ALIGNED = 64  # bytes: what IREE wants of an imported buffer
CPU, CUDA = 1, 2  # DLDeviceType, <dlpack/dlpack.h>
# 3.13 describes no Hopper: "Unknown CUDA target" for h100, "missing GPU target" for sm_90. PTX for 8.0 runs there.
TARGETS = {
    "cuda": ("cuda", "cuda", ["--iree-cuda-target=sm_80"]),
    "cpu": ("llvm-cpu", "local-task", ["--iree-llvmcpu-target-cpu=host"]),
}


def compiled(function, *tensors):
    """``run`` for ``function`` of JAX arrays, compiled for tensors of these shapes; it returns one of torch's."""
    backend, driver, flags = TARGETS[tensors[0].device.type]
    binary = iree.compiler.compile_str(
        _lowered(function, *tensors), target_backends=[backend], input_type="stablehlo", extra_args=flags
    )
    config = _config(driver)
    context = iree.runtime.SystemContext(config=config)
    module = iree.runtime.VmModule.copy_buffer(context.instance, binary)
    context.add_vm_module(module)
    main, device = context.modules[module.name]["main"], config.device

    def run():
        if tensors[0].is_cuda:
            torch.cuda.current_stream().synchronize()
        result = main(*(_array(device, tensor) for tensor in tensors))
        place = (CUDA, tensors[0].device.index) if tensors[0].is_cuda else (CPU, 0)
        return torch.from_dlpack(device.create_dlpack_capsule(result._buffer_view, *place))

    return run


def unsupported(dtype, **sizes):
    return "IREE's DLPack takes no array without elements" if 0 in sizes.values() else None


@functools.cache
def _config(driver):
    return iree.runtime.Config(driver)


def _lowered(function, *tensors):
    shapes = [jax.ShapeDtypeStruct(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors]
    return jax.jit(function).lower(*shapes).compiler_ir("stablehlo").operation.get_asm(binary=False)


def _array(device, tensor):
    view = device.from_dlpack_capsule(torch.utils.dlpack.to_dlpack(aligned(tensor, ALIGNED)))
    return iree.runtime.DeviceArray(device, view)
