"""Clocks, throttling and neighbours, read through an NVML that is made up."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from groundspeed.measure import gpu_state
from groundspeed.measure.gpu_state import THERMAL, Gpu, Reading, hashed, summary


class NVMLError_NotFound(Exception):
    pass


def nvml(**changes):
    values = {
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: ("handle", uuid),
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0,
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetPowerUsage": lambda handle: 412_345,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 7,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
        "nvmlSystemGetDriverVersion": lambda: b"580.1",
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [],
    }
    return SimpleNamespace(**{**values, **changes})


def gpu(**changes) -> Gpu:
    return Gpu(nvml(**changes), "handle")


@pytest.mark.parametrize("uuid", ["1234", "GPU-1234"])
def test_a_gpu_is_opened_by_cudas_uuid(monkeypatch, uuid):
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert Gpu.open(uuid)._handle == ("handle", b"GPU-1234")


def test_without_a_binding_a_driver_or_that_gpu_there_is_none_and_other_errors_are_not_swallowed(monkeypatch):
    def fails(error):
        def call(*_):
            raise error

        return call

    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=fails(NVMLError_NotFound())))
    assert Gpu.open("1") is None
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetHandleByUUID=fails(NVMLError_NotFound())))
    assert Gpu.open("1") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Gpu.open("1") is None
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=fails(ValueError("a fault of ours"))))
    with pytest.raises(ValueError, match="a fault of ours"):
        Gpu.open("1")


def test_a_reading_is_in_mhz_watts_and_degrees():
    assert gpu().read() == Reading(1980, 3201, 412.345, 41, ())
    assert gpu().power_cap_w() == 700.0 and gpu().energy_mj() == 7
    assert gpu().driver() == "580.1" == gpu(nvmlSystemGetDriverVersion=lambda: "580.1").driver()


@pytest.mark.parametrize(
    ("mask", "reasons", "thermal"),
    [
        (0x00, (), False),
        (0x01 | 0x02 | 0x10, (), False),  # idle, application clocks, sync boost: nobody's fault
        (0x04, ("software power cap",), False),  # a full load at the power limit is how these kernels run
        (0x20, ("software thermal slowdown",), True),
        (0x08 | 0x40 | 0x80, ("hardware slowdown", "hardware thermal slowdown", "hardware power brake"), True),
    ],
)
def test_why_it_is_slowed(mask, reasons, thermal):
    found = gpu(nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: mask).read().throttle
    assert found == reasons and bool(set(found) & THERMAL) is thermal


def test_this_process_is_not_its_own_neighbour():
    pids = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in (os.getpid(), 1, 2)]
    assert gpu(nvmlDeviceGetComputeRunningProcesses=lambda handle: pids).other_processes() == 2
    assert gpu(nvmlDeviceGetComputeRunningProcesses=lambda handle: pids[:1]).other_processes() == 0


class NVMLError_NoPermission(Exception):
    pass


def test_what_the_driver_does_not_tell_is_nobody_and_other_errors_are_not_swallowed():
    def raises(error):
        def call(handle):
            raise error

        return call

    names = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetUtilizationRates")
    silent = gpu(**dict.fromkeys(names, raises(NVMLError_NoPermission())))
    assert silent.compute_processes() == [] and silent.utilisation() == 0
    broken = gpu(**dict.fromkeys(names, raises(NVMLError_NotFound())))
    for ask in (broken.compute_processes, broken.utilisation):
        with pytest.raises(NVMLError_NotFound):
            ask()


def test_the_summary_keeps_the_range_of_clocks_and_every_reason():
    readings = [Reading(1200, 3201, 300.04, 40, ("b",)), Reading(1980, 3201, 690.06, 52, ("a", "b"))]
    clocks = summary(readings)
    assert clocks.sm_mhz == (1200, 1980) and clocks.power_w == 690.1 and clocks.temperature_c == 52
    assert clocks.throttle == ("a", "b")
    assert summary([]) is None


def test_a_uuid_is_told_apart_and_not_told():
    assert hashed("GPU-1") != hashed("GPU-2") and len(hashed("GPU-1")) == 12 and "GPU" not in hashed("GPU-1")
    assert gpu_state.hashed("GPU-1") == hashed("GPU-1")
