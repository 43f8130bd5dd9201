"""Nsight Systems: how it is called, and its trace of what ran on the GPU. It counts nothing inside a kernel."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from groundspeed.profiling.kernels import Dim3, Launch

_SIZES = {"B": 1, "byte": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIMES = {"ns": 1.0, "us": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}


def record_command(tool: Path, report: Path, program: Sequence[str]) -> list[str]:
    """Record between cudaProfilerStart and -Stop into ``report``."""
    return [
        *(str(tool), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
        *("--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--force-overwrite=true"),
        *("--output", str(report)),
        *program,
    ]


def trace_command(tool: Path, report: Path) -> list[str]:
    """Write the report's GPU trace to standard output: a line for each kernel, copy and fill."""
    return [str(tool), "stats", "--report", "cuda_gpu_trace", "--format", "csv", "--force-export=true", str(report)]


def parse_trace(text: str) -> list[Launch]:
    """Launches in the order in which they began; nothing when there is no table.

    Units stand in the header: ``Duration (ns)``, ``DymSMem (MB)``. Shared memory is rounded there to three decimals.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if re.match(r'"?Start \(', line)), None)
    if start is None:
        return []
    header, *rows = list(csv.reader(lines[start:]))
    columns = {name.partition(" (")[0]: (number, _unit(name)) for number, name in enumerate(header)}
    launches = []
    for row in rows:
        if len(row) == len(header):
            launches.append(_launch({name: (row[at], unit) for name, (at, unit) in columns.items()}))
    return launches


def _launch(cells: Mapping[str, tuple[str, str]]) -> Launch:
    registers = _number(cells.get("Reg/Trd"), {})
    shared = [_number(cells.get(name), _SIZES) for name in ("StcSMem", "DymSMem")]
    known = [size for size in shared if size is not None]
    return Launch(
        name=cells["Name"][0],
        duration_ns=_number(cells.get("Duration"), _TIMES) or 0.0,
        grid=_dims(cells, "Grd"),
        block=_dims(cells, "Blk"),
        registers=None if registers is None else int(registers),
        shared_bytes=round(sum(known)) if known else None,
    )


def _number(cell: tuple[str, str] | None, units: Mapping[str, float]) -> float | None:
    if cell is None or not cell[0].strip():
        return None
    return float(cell[0].replace(",", "")) * units.get(cell[1], 1.0)


def _dims(cells: Mapping[str, tuple[str, str]], prefix: str) -> Dim3 | None:
    values = [_number(cells.get(f"{prefix}{axis}"), {}) for axis in "XYZ"]
    x, y, z = values
    return None if x is None or y is None or z is None else (int(x), int(y), int(z))


def _unit(name: str) -> str:
    match = re.search(r"\((.+)\)$", name)
    return match.group(1) if match else ""
