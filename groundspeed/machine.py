"""The machine: one kind of runner, named from its GPU, and what asv files under that name.

``nvidia-h200`` is a host with one NVIDIA H200, ``nvidia-h200-x2`` one with two, ``cpu-amd-epyc`` one without a GPU.
The host's name never appears: two runners of one kind add to one history. Neither torch nor CUDA is touched.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from groundspeed import nvml
from groundspeed.build import torch_has_cuda
from groundspeed.errors import UserError

DEVICES = ("cuda", "cpu")

_GIB = 2**30


def chosen_device() -> str:
    """What a run measures on: GROUNDSPEED_DEVICE, else ``cuda`` where a GPU is visible and torch was built for one."""
    named = os.environ.get("GROUNDSPEED_DEVICE")
    if named:
        if named not in DEVICES:
            raise UserError(f"GROUNDSPEED_DEVICE is {named!r}, expected {' or '.join(DEVICES)}")
        return named
    return "cuda" if visible_gpu_count() and torch_has_cuda() else "cpu"


def measuring_device(asked: str | None) -> str:
    """The device asked for, or the chosen one, once it can measure here. Raises UserError for CUDA where it cannot."""
    device = asked or chosen_device()
    if device != "cuda" or (visible_gpu_count() and torch_has_cuda()):
        return device
    how = "--device cuda" if asked else "GROUNDSPEED_DEVICE=cuda"
    why = "no GPU is visible here" if torch_has_cuda() else "the torch installed here was built without CUDA"
    raise UserError(f"{how}: {why}; leave it out, or say cpu, to measure on the CPU")


def machine_name(device: str | None = None) -> str:
    """The name this host's results on a device (``cuda`` or ``cpu``; the chosen one by default) are kept under.

    What a host with a GPU measures on its CPU is filed under the CPU's name.
    """
    return machine_of(_gpus_of(device))


def machine_of(gpus: Sequence[nvml.Gpu]) -> str:
    """The name of a host with these GPUs and no other."""
    return _name(gpus, cpu_model())


def machine_without_gpu(cpu: str) -> str:
    """The name of a host with this CPU and no GPU."""
    return _name((), cpu)


def machine_fields(device: str | None = None) -> dict[str, str]:
    """What asv keeps of a machine (machine.json): its own six fields, ``gpu`` and ``gpu_memory``.

    asv splits a series wherever one of these differs, so nothing is here that changes while the machine stays what
    it is: not the kernel's release, the driver or CUDA (each record has them), and memory only in whole GiB.
    """
    gpus = _gpus_of(device)
    fields = {
        "machine": _name(gpus, cpu_model()),
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu_model(),
        "num_cpu": str(os.cpu_count() or ""),
        "ram": _gibibytes(_memory_bytes()),
    }
    if gpus:
        fields["gpu"] = _join(Counter(gpu.name for gpu in gpus), " x")
        fields["gpu_memory"] = _join(Counter(_gibibytes(gpu.memory_bytes) for gpu in gpus), " x")
    return fields


def visible_gpu_count() -> int:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves."""
    return len(visible_gpus())


def cpu_model() -> str:
    """The CPU's own name for itself, or its architecture where it has none."""
    system = platform.system()
    if system == "Linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    elif system == "Darwin":
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, timeout=30, check=False
        )
        if asked.stdout.strip():
            return asked.stdout.strip()
    return platform.processor() or platform.machine()


def _gpus_of(device: str | None) -> tuple[nvml.Gpu, ...]:
    return visible_gpus() if (device or chosen_device()) == "cuda" else ()


def visible_gpus() -> tuple[nvml.Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in the order of the bus."""
    return nvml.visible_gpus(nvml.installed_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def _name(gpus: Sequence[nvml.Gpu], cpu: str) -> str:
    if not gpus:
        return f"cpu-{_slug(_plain_cpu(cpu))}"
    return _join(Counter(_gpu_slug(gpu.name) for gpu in gpus), "-x", between="-")


def _gpu_slug(name: str) -> str:
    slug = _slug(name)
    return slug if slug.startswith("nvidia-") else f"nvidia-{slug}"


def _plain_cpu(model: str) -> str:
    """Without trade marks, the word CPU and the nominal clock: none of them tells two CPUs apart."""
    return re.sub(r"\((?:R|TM|C)\)|\bCPU\b|@.*", " ", model, flags=re.IGNORECASE)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _join(counts: Counter[str], times: str, between: str = ", ") -> str:
    """``a`` or ``a x2``, sorted: the same set of GPUs reads the same in any order."""
    return between.join(text if n == 1 else f"{text}{times}{n}" for text, n in sorted(counts.items()))


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gibibytes(size: int) -> str:
    return f"{round(size / _GIB)} GiB"
