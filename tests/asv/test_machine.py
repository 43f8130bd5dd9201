"""The machine's name and fields: what a GPU runner is called, and what may not split its history."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from groundspeed import machine, nvml
from groundspeed.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
H200 = nvml.Gpu("NVIDIA H200", 143771 * 2**20, "GPU-aaaa-1")
SECOND = nvml.Gpu("NVIDIA H200", 143771 * 2**20, "GPU-aabb-2")
T4 = nvml.Gpu("Tesla T4", 15360 * 2**20, "GPU-cccc-3")

FAKE_LIBRARY = r"""
#include <string.h>
static const char* names[] = {"NVIDIA H200", "NVIDIA H200"};
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) { *handle = &names[index]; return 0; }
int nvmlDeviceGetName(void* handle, char* name, unsigned length) { strncpy(name, *(char**)handle, length); return 0; }
int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned length) {
  strncpy(uuid, handle == &names[0] ? "GPU-aaaa" : "GPU-bbbb", length); return 0; }
int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* memory) { memory[0] = 150754820096ULL; return 0; }
"""


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((H200,), "nvidia-h200"),
        ((H200, SECOND), "nvidia-h200-x2"),
        ((T4,), "nvidia-tesla-t4"),
        ((T4, H200, SECOND), "nvidia-h200-x2-nvidia-tesla-t4"),
        ((nvml.Gpu("NVIDIA H100 80GB HBM3", 1, "GPU-1"),), "nvidia-h100-80gb-hbm3"),
    ],
)
def test_a_gpu_runner_is_named_from_its_gpus(gpus: tuple[nvml.Gpu, ...], expected: str) -> None:
    assert machine._name(gpus, "AMD EPYC") == expected


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("AMD EPYC", "cpu-amd-epyc"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "cpu-intel-xeon-platinum-8481c"),
        ("Apple M3 Pro", "cpu-apple-m3-pro"),
        ("aarch64", "cpu-aarch64"),
    ],
)
def test_without_a_gpu_the_cpu_names_it(cpu: str, expected: str) -> None:
    assert machine._name((), cpu) == expected


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, (H200, SECOND, T4)),
        ("", ()),
        ("-1", ()),
        ("1", (SECOND,)),
        ("2,0", (T4, H200)),
        ("0,7,1", (H200,)),  # CUDA stops at the first entry that names no GPU
        ("GPU-cc", (T4,)),
        ("GPU-aa", ()),  # two GPUs begin so
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(visible: str | None, expected: tuple[nvml.Gpu, ...]) -> None:
    assert nvml.visible_gpus((H200, SECOND, T4), visible) == expected


def test_fields_hold_nothing_that_changes_while_the_machine_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: (H200, SECOND))
    fields = machine.machine_fields("cuda")
    assert fields["machine"] == "nvidia-h200-x2"
    assert fields["gpu"] == "NVIDIA H200 x2"
    assert fields["gpu_memory"] == "140 GiB x2"
    assert set(fields) == {"machine", "os", "arch", "cpu", "num_cpu", "ram", "gpu", "gpu_memory"}
    release, node = os.uname().release, os.uname().nodename
    assert not any(release in value or value == node for value in fields.values())


def test_without_a_gpu_there_are_no_gpu_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ())
    assert set(machine.machine_fields("cuda")) == {"machine", "os", "arch", "cpu", "num_cpu", "ram"}


def test_what_is_measured_on_the_cpu_of_a_gpu_host_is_filed_under_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: (H200,))
    monkeypatch.setattr(machine, "torch_has_cuda", lambda: True)
    assert machine.machine_name() == "nvidia-h200"
    monkeypatch.setattr(machine, "torch_has_cuda", lambda: False)
    assert machine.machine_name().startswith("cpu-")
    assert "gpu" not in machine.machine_fields()
    monkeypatch.setattr(machine, "torch_has_cuda", lambda: True)
    monkeypatch.setenv("GROUNDSPEED_DEVICE", "cpu")
    assert machine.machine_name().startswith("cpu-")


def test_an_unknown_device_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSPEED_DEVICE", "gpu")
    with pytest.raises(UserError, match="GROUNDSPEED_DEVICE is 'gpu', expected cuda or cpu"):
        machine.machine_name()


def _name_in_a_process(**environment: str) -> str:
    code = (
        "import sys; from groundspeed.machine import machine_name; print(machine_name('cuda')); "
        "assert 'torch' not in sys.modules, 'naming the machine imported torch'"
    )
    kept = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to build a stand-in for the driver's library")
def test_the_drivers_library_is_asked_through_its_c_interface(tmp_path: Path) -> None:
    source = tmp_path / "nvml.c"
    source.write_text(FAKE_LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / nvml.SONAME)], check=True)
    library = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert _name_in_a_process(**library) == "nvidia-h200-x2"
    assert _name_in_a_process(**library, CUDA_VISIBLE_DEVICES="1") == "nvidia-h200"
    assert _name_in_a_process(**library, CUDA_VISIBLE_DEVICES="").startswith("cpu-")


def test_a_host_without_the_library_asks_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, GPU-aaaa-1'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert nvml._from_nvidia_smi() == (H200,)
