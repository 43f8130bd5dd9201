"""What a station stands on: its GPU, or the CPU, held for it alone, and whether it can still measure there."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from dataclasses import dataclass

from groundspeed import nvml
from groundspeed.fleet.work import About
from groundspeed.installed import version_of
from groundspeed.machine import cpu_model, machine_of, machine_without_gpu, visible_gpus
from groundspeed.measure.gpu_state import Gpu, hashed
from groundspeed.measure.lane import CPU, VISIBLE, Place
from groundspeed.measure.process import worker_environment

_PROBE = (
    "import torch; torch.cuda.init(); torch.zeros(1, device='cuda').add_(1).item(); print('torch', torch.__version__)"
)
_PROBE_SECONDS = 180.0
SUSPECT = ("crash", "timeout")  # failures that a GPU which is gone has too


@dataclass(frozen=True)
class Ground:
    """A station's place. ``number`` is what its host calls the GPU; ``seat`` the fleet's name for the station."""

    place: Place
    seat: str
    number: str = ""

    @classmethod
    def of(cls, device: str, seat: str) -> Ground:
        """The GPU that Ray gave this process, under the variable that CUDA heeds, or the CPU."""
        if device != "cuda":
            return cls(CPU, seat)
        number = os.environ.get(VISIBLE, "")
        visible = visible_gpus()
        label = f"{socket.gethostname()} GPU {number}"
        return cls(Place(visible[0], label) if visible else Place(None, label), seat, number)

    @property
    def machine(self) -> str:
        return machine_without_gpu(cpu_model()) if self.place.gpu is None else machine_of([self.place.gpu])

    @property
    def label(self) -> str:
        """Host and GPU, or host and node, for people."""
        return self.place.label or f"{socket.gethostname()} {self.seat.partition('/')[0]}"

    def about(self, problem: str = "") -> About:
        """With versions: of torch as it is installed, or on a GPU as it says itself once it has used it."""
        host = socket.gethostname()
        gpu = self.place.gpu
        if gpu is None:
            missing = f"Ray gave it GPU {self.number}, and no driver shows one" if self.number else ""
            return About(
                host=host,
                machine=self.machine,
                place=hashed(host),
                label=self.label,
                torch=version_of("torch"),
                python=_python(),
                problem=problem or missing,
            )
        version, fault = self.probe()
        driver = Gpu.open(gpu.uuid)
        return About(
            host=host,
            machine=self.machine,
            place=hashed(gpu.uuid),
            label=self.label,
            device_name=gpu.name,
            driver=driver.driver() if driver else "",
            torch=version or version_of("torch"),
            python=_python(),
            problem=problem or fault,
        )

    def probe(self) -> tuple[str, str]:
        """torch's version and nothing, or nothing and why torch cannot use this GPU; in a process of its own."""
        environment = worker_environment(self.place.variables)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True, timeout=_PROBE_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "", f"torch did not use the GPU within {_PROBE_SECONDS:.0f} s"
        said = [line for line in done.stdout.splitlines() if line.startswith("torch ")]
        if done.returncode == 0 and said:
            return said[-1].removeprefix("torch "), ""
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = lines[-1][:200] if lines else f"it ended with status {done.returncode}"
        return "", f"torch {version_of('torch')} cannot use the GPU: {why}"

    def why_unfit(self) -> str:
        """Why nothing can be measured here any more, or empty. A CPU stays what it is."""
        gpu = self.place.gpu
        if gpu is None:
            return ""
        if gpu.uuid not in {one.uuid for one in visible_gpus()}:
            return "the GPU has fallen off the bus: its driver does not list it any more"
        return self.probe()[1]


def _python() -> str:
    """Without the last number: it changes nothing that is measured."""
    return ".".join(platform.python_version_tuple()[:2])


def machine_here(device: str) -> str:
    """What this host's results on a device are filed under, whichever of its GPUs Ray shows this process."""
    gpus = nvml.installed_gpus() if device == "cuda" else ()
    return machine_of(gpus[:1]) if gpus else machine_without_gpu(cpu_model())
