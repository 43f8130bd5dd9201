"""Say what this machine is called in results, and what it has to measure with. Neither torch nor CUDA is started."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from importlib import metadata

from groundspeed.machine import machine_fields, machine_name
from groundspeed.project import find_project

PACKAGES = ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x", "asv", "numpy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument(
        "--asv",
        action="store_true",
        help="describe it to asv anew, in ~/.asv-machine.json and results/<machine>/machine.json",
    )


def run(arguments: argparse.Namespace) -> int:
    fields = machine_fields()
    tools = {"nvcc": _nvcc(), "g++": shutil.which("g++") or ""}
    packages = {name: version for name in PACKAGES if (version := _version(name))}
    if arguments.asv:
        from groundspeed.asv_machine import describe

        describe(find_project(arguments.project).results)
    if arguments.json:
        print(json.dumps({**fields, "tools": tools, "packages": packages}, indent=2))
        return 0
    print(machine_name())
    for key, value in {**fields, **packages}.items():
        if key != "machine":
            print(f"  {key:<13} {value}")
    for key, value in tools.items():
        print(f"  {key:<13} {value or 'not found'}")
    if "gpu" not in fields:
        print("No NVIDIA GPU: torch eager and torch.compile are timed on the CPU, CUDA and CuPy")
        print("are skipped, Triton kernels are checked in the interpreter.")
    return 0


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _nvcc() -> str:
    """The release nvcc prints of itself, empty where there is none."""
    path = shutil.which("nvcc")
    if path is None:
        return ""
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    return next((line.split("release ")[1].split(",")[0] for line in printed.splitlines() if "release " in line), path)
