"""The GPUs of this host, asked of the driver's management library: no torch, no CUDA context.

A CUDA context costs 0.3 s and hundreds of MB on the GPU, and a process that forks after making one is broken;
naming the machine must do neither.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

SONAME = "libnvidia-ml.so.1"

_NAME_BYTES = 96
_UUID_BYTES = 96


@dataclass(frozen=True)
class Gpu:
    """One GPU: the driver's name for it, its memory in bytes, its UUID (``GPU-…``)."""

    name: str
    memory_bytes: int
    uuid: str


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def installed_gpus() -> tuple[Gpu, ...]:
    """Every NVIDIA GPU of the host in the order of the PCI bus; empty without a GPU or a driver."""
    try:
        library = ctypes.CDLL(SONAME)
    except OSError:
        return _from_nvidia_smi()
    if library.nvmlInit_v2() != 0:
        return ()  # the library is there and the driver is not loaded: a GPU image on a host without one
    try:
        return _from_library(library)
    finally:
        library.nvmlShutdown()


def visible_gpus(gpus: Sequence[Gpu], visible_devices: str | None) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves: all when it is unset (None).

    Entries are indices or beginnings of UUIDs; as in CUDA, the first one that names no GPU ends the list.
    Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    if visible_devices is None:
        return tuple(gpus)
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in visible_devices.split(",")):
        if entry.isdecimal():
            matching = list(gpus[int(entry) : int(entry) + 1])
        else:
            matching = [gpu for gpu in gpus if entry and gpu.uuid.startswith(entry)]
        if len(matching) != 1:
            break
        chosen += matching
    return tuple(chosen)


def _from_library(library: ctypes.CDLL) -> tuple[Gpu, ...]:
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return ()
    return tuple(_read(library, index) for index in range(count.value))


def _read(library: ctypes.CDLL, index: int) -> Gpu:
    handle = ctypes.c_void_p()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    uuid = ctypes.create_string_buffer(_UUID_BYTES)
    memory = _Memory()
    steps = (
        ("nvmlDeviceGetHandleByIndex_v2", (ctypes.c_uint(index), ctypes.byref(handle))),
        ("nvmlDeviceGetName", (handle, name, ctypes.c_uint(_NAME_BYTES))),
        ("nvmlDeviceGetUUID", (handle, uuid, ctypes.c_uint(_UUID_BYTES))),
        ("nvmlDeviceGetMemoryInfo", (handle, ctypes.byref(memory))),
    )
    for function, arguments in steps:
        status = getattr(library, function)(*arguments)
        if status != 0:
            raise OSError(f"{SONAME}: {function} of GPU {index} returned {status}; look at nvidia-smi")
    return Gpu(name.value.decode(), memory.total, uuid.value.decode())


def _from_nvidia_smi() -> tuple[Gpu, ...]:
    """The same from the command line: where the loader does not find the library, the command may know it."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,uuid", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (FileNotFoundError, PermissionError):  # a PATH may name folders that may not be searched
        return ()
    if done.returncode != 0:
        return ()
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return tuple(Gpu(name, int(mebibytes) * 2**20, uuid) for name, mebibytes, uuid in rows)
