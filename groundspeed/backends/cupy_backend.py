"""CuPy kernels, on torch's memory and torch's current stream."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from groundspeed.backends.base import Opened, prepare_of, unsupported_of
from groundspeed.tree import Implementation, Tree


def absent(device: str) -> str | None:
    if device != "cuda":
        return "CuPy needs a GPU"
    if importlib.util.find_spec("cupy") is None:
        return "cupy is not installed: pip install 'groundspeed[cuda]'"
    return None


def open_implementation(tree: Tree, implementation: Implementation) -> Opened:
    import cupy
    import torch

    cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream).use()
    module = tree.load(f"{implementation.operator}.{implementation.name}")

    with_arrays = prepare_of(module)

    def prepare(tensors):  # type: ignore[no-untyped-def]
        return with_arrays({name: _to_cupy(tensor) for name, tensor in tensors.items()})

    supported = unsupported_of(module)

    def unsupported(case):  # type: ignore[no-untyped-def]
        return supported(case)

    return Opened(prepare=prepare, unsupported=unsupported, to_torch=_to_torch)


@contextlib.contextmanager
def torch_allocator() -> Iterator[None]:
    """Let CuPy allocate through torch's caching allocator, so that one counter sees both (peak memory pass)."""
    import cupy
    import torch

    def allocate(size: int, device: int) -> int:
        return int(torch.cuda.caching_allocator_alloc(size, device))

    def free(pointer: int, device: int) -> None:
        torch.cuda.caching_allocator_delete(pointer)

    allocator = cupy.cuda.PythonFunctionAllocator(allocate, free)
    with cupy.cuda.using_allocator(allocator.malloc):
        yield


def _to_cupy(tensor: Any) -> Any:
    """A view of the same memory: of the host's a NumPy array. DLPack refuses some tensors that are empty."""
    import cupy

    if tensor.device.type == "cpu":
        return tensor.detach().numpy()
    if tensor.numel() == 0:
        return cupy.empty(tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))
    return cupy.from_dlpack(tensor.detach())


def _to_torch(output: Any) -> tuple[Any, ...]:
    import torch

    outputs = output if isinstance(output, tuple | list) else (output,)
    return tuple(_from_cupy(torch, array) for array in outputs)


def _from_cupy(torch: Any, array: Any) -> Any:
    if array.size == 0:
        return torch.empty(array.shape, dtype=getattr(torch, array.dtype.name), device="cuda")
    return torch.from_dlpack(array)
