"""A JAX function lowered to StableHLO and compiled by IREE, on torch's tensors.

IREE's device works on a stream of its own, which it does not hand out, and its DLPack takes no stream either. So the
host waits for torch's stream before a call, and IREE waits for its own before it returns: the order is right, the call
costs two stops of the host, and where IREE launches several kernels the gaps between them hold the host's time.

IREE's CUDA device cannot hand out memory that it allocated ("CUDA buffer type is not supported for export"), so the
result is written to a tensor of torch's that is an argument too, by IREE's attribute ``iree.abi.output``.
"""

import functools
import re

import iree.compiler
import iree.runtime
import jax
import torch

from .._torch.aligned import aligned

ALIGNED = 64  # bytes: what IREE wants of an imported buffer
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
    shape, dtype = _result(function, *tensors)

    def run():
        result = torch.empty(shape, dtype=dtype, device=tensors[0].device)
        if result.data_ptr() % ALIGNED:
            raise RuntimeError(f"torch's allocator gave memory off {ALIGNED} bytes: IREE would write into a copy of it")
        given = [aligned(tensor, ALIGNED) for tensor in tensors]
        if result.is_cuda:  # after the copies of misaligned inputs, which are work of torch's stream as well
            torch.cuda.current_stream().synchronize()
        main(*(_array(device, tensor) for tensor in (*given, result)))
        return result

    return run


def unsupported(dtype, **sizes):
    return "IREE's DLPack takes no array without elements" if 0 in sizes.values() else None


@functools.cache
def _config(driver):
    return iree.runtime.Config(driver)


def _shapes(tensors):
    return [jax.ShapeDtypeStruct(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors]


def _result(function, *tensors):
    """Shape and dtype, as torch says them, of what the function returns."""
    made = jax.eval_shape(function, *_shapes(tensors))
    return made.shape, getattr(torch, made.dtype.name)


def _lowered(function, *tensors):
    """The function in StableHLO, with one argument more: where its result goes."""

    def into(*arguments):
        return function(*arguments[:-1])

    shapes = _shapes(tensors)
    made = jax.eval_shape(function, *shapes)
    module = jax.jit(into, keep_unused=True).lower(*shapes, made).compiler_ir("stablehlo")
    text = module.operation.get_asm(binary=False)
    last = re.compile(rf"(%arg{len(shapes)}: tensor<[^>]*>)")
    marked, count = last.subn(r"\1 {iree.abi.output = 0 : index}", text, count=1)
    if not count:
        raise RuntimeError(f"no argument {len(shapes)} to return the result in: {text.splitlines()[1]}")
    return marked


def _array(device, tensor):
    view = device.from_dlpack_capsule(torch.utils.dlpack.to_dlpack(tensor))
    return iree.runtime.DeviceArray(device, view)
