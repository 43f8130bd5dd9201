"""Finding out what there is to measure is quick and touches neither torch nor CUDA."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import json, sys
import benchmarks
from asv_runner.discovery import list_benchmarks
with open(sys.argv[1], "w") as file:
    list_benchmarks(sys.argv[2], file)
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print(json.dumps({
    "modules": [name for name in ("torch", "triton", "cupy", "dash") if name in sys.modules],
    "libraries": [name for name in ("libcuda.so", "libcudart", "libtorch") if name in maps],
}))
"""


def test_discovery_imports_no_torch_starts_no_cuda_and_is_quick(tmp_path: Path) -> None:
    listed = tmp_path / "benchmarks.json"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(listed), str(ROOT / "benchmarks")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"modules": [], "libraries": []}
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu_seconds < 2.0  # measured 0.5; import torch alone takes more than this limit

    names = {entry["name"]: entry for entry in json.loads(listed.read_text())}
    assert {"device_time.relu.cold", "device_time.relu.hot", "call_time.relu", "peak_memory.relu"} <= set(names)
    assert {"error.relu", "first_call.relu"} <= set(names)
    units = {name.partition(".")[0]: entry["unit"] for name, entry in names.items()}
    assert units == {
        "device_time": "seconds",
        "call_time": "seconds",
        "first_call": "seconds",
        "peak_memory": "bytes",
        "error": "",
    }
    relu = [entry for name, entry in names.items() if ".relu" in name]
    assert len({entry["setup_cache_key"] for entry in relu}) == 1  # one sweep serves every question
    assert all(entry["param_names"] == ["implementation", "dtype", "shape"] for entry in names.values())
