"""Clocks, power, throttling and neighbours of a GPU, read through NVML. Reading only: nothing here sets anything."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from groundspeed.records import Clocks

# nvmlClocksThrottleReason* bits (NVML API reference, "Clock Event Reasons"); idle and application clocks are no fault.
_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
THERMAL = frozenset(
    {"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "hardware power brake"}
)


@dataclass(frozen=True)
class Reading:
    """One look at the GPU. MHz, watts, degrees Celsius."""

    sm_mhz: int
    memory_mhz: int
    power_w: float
    temperature_c: int
    throttle: tuple[str, ...]


class Gpu:
    """One GPU by its UUID, NVML's own index not being CUDA's."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    @classmethod
    def open(cls, uuid: str) -> Gpu | None:
        """The GPU with CUDA's UUID, or None where NVML or its Python binding is absent or does not know it."""
        try:
            import pynvml

            pynvml.nvmlInit()
            return cls(pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}".encode()))
        except ImportError:
            return None
        except Exception as error:
            if type(error).__name__.startswith("NVMLError"):
                return None
            raise

    def read(self) -> Reading:
        nvml, handle = self._nvml, self._handle
        mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return Reading(
            sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            throttle=tuple(name for bit, name in _REASONS.items() if mask & bit),
        )

    def energy_mj(self) -> int:
        """Millijoules since the driver was loaded."""
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def energy_meter(self) -> Callable[[], int] | None:
        """What reads millijoules since the driver was loaded; None where the GPU has no such counter."""
        try:
            self.energy_mj()
        except Exception as error:
            if type(error).__name__ == "NVMLError_NotSupported":
                return None
            raise
        return self.energy_mj

    def power_cap_w(self) -> float:
        return float(self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle)) / 1000

    def driver(self) -> str:
        version = self._nvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)

    def other_processes(self) -> int:
        """Compute processes on the GPU besides this one, as far as this container can see."""
        return sum(1 for pid, _ in self.compute_processes() if pid != os.getpid())

    def compute_processes(self) -> list[tuple[int, int]]:
        """Process id and bytes held of each process with a context on the GPU, as far as the driver tells."""
        running = self._told(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle), [])
        return [(process.pid, process.usedGpuMemory or 0) for process in running]

    def utilisation(self) -> int:
        """Per cent of the last second or less in which a kernel ran; 0 where the driver does not tell."""
        return int(self._told(lambda: self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu, 0))

    @staticmethod
    def _told(ask: Callable[[], Any], otherwise: Any) -> Any:
        """The driver's answer, or what stands for none: virtual GPUs and some containers are told less."""
        try:
            return ask()
        except Exception as error:
            if type(error).__name__ in ("NVMLError_NotSupported", "NVMLError_NoPermission"):
                return otherwise
            raise


def summary(readings: Iterable[Reading]) -> Clocks | None:
    """What to keep of the readings around a case."""
    seen = list(readings)
    if not seen:
        return None
    return Clocks(
        sm_mhz=(min(r.sm_mhz for r in seen), max(r.sm_mhz for r in seen)),
        memory_mhz=max(r.memory_mhz for r in seen),
        power_w=round(max(r.power_w for r in seen), 1),
        temperature_c=max(r.temperature_c for r in seen),
        throttle=tuple(sorted({reason for r in seen for reason in r.throttle})),
    )


def hashed(uuid: str) -> str:
    """A GPU's UUID as 12 hex digits: tells two cards apart and tells nobody which they are."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:12]
