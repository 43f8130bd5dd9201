"""What the numbers depend on besides the code: devices, versions, clocks' limits."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable

import torch

import groundspeed
from groundspeed.backends.libraries import versions
from groundspeed.installed import version_of
from groundspeed.machine import cpu_model
from groundspeed.measure import gpu_state
from groundspeed.records import Environment


def choose_device() -> str:
    """``cuda`` where torch sees a GPU, else ``cpu``."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def gpu_handle(device: str) -> gpu_state.Gpu | None:
    """NVML's view of torch's current GPU."""
    if device != "cuda":
        return None
    return gpu_state.Gpu.open(str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid))


def describe(device: str, backends: Iterable[str] = ()) -> Environment:
    """The environment of a sweep on a device, by implementations of these back ends."""
    common = {
        "device": device,
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()}",
        "cpu": cpu_model(),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
        "triton": version_of("triton"),
        "cupy": version_of("cupy-cuda13x") or version_of("cupy-cuda12x") or version_of("cupy"),
        "libraries": versions(backends),
        "groundspeed": groundspeed.__version__,
    }
    if device != "cuda":
        return Environment(device_name=cpu_model(), memory_bytes=_physical_memory(), **common)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    gpu = gpu_handle(device)
    return Environment(
        device_name=properties.name,
        device_count=torch.cuda.device_count(),
        uuid_hash=gpu_state.hashed(str(properties.uuid)),
        driver=gpu.driver() if gpu else "",
        cuda=torch.version.cuda or "",
        capability=f"{properties.major}.{properties.minor}",
        multiprocessors=properties.multi_processor_count,
        l2_bytes=properties.L2_cache_size,
        memory_bytes=properties.total_memory,
        power_cap_w=gpu.power_cap_w() if gpu else 0.0,
        nvcc=_nvcc(),
        other_processes=gpu.other_processes() if gpu else 0,
        **common,
    )


def free_memory(device: str) -> int:
    """Bytes that can still be taken on the device."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _nvcc() -> str:
    from groundspeed.build import find_toolchain
    from groundspeed.errors import UserError

    try:
        return find_toolchain().version
    except UserError:
        return ""


def _physical_memory() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
