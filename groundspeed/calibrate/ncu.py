"""Nsight Compute on the probes: one run of its own after the processes, because it replays every kernel.

``gpu__time_duration.sum`` of each kernel, all caches flushed before it (its default), clocks left as they are: its
default holds them at the base clock, which nothing else here does. A call of several kernels is the sum of theirs.
"""

from __future__ import annotations

import csv
import io
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from groundspeed.calibrate.schema import Missing, Reading

METHOD = "ncu"
MARK = "groundspeed_mark"
METRIC = "gpu__time_duration.sum"
REPEATS = 3
_LIMIT = 120.0
_UNITS = {"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9}
_PLACES = ("/usr/local/cuda/bin/ncu",)


class NoFigures(Exception):
    """Why Nsight Compute gave none."""


def find_ncu() -> str | None:
    """The path of ``ncu``, or None."""
    return shutil.which("ncu") or next((place for place in _PLACES if Path(place).is_file()), None)


def measure(probes: Sequence[str], environment: dict[str, str]) -> Iterator[Reading | Missing]:
    """A reading of each probe (process 0: there is but one run), or why there is none."""
    path = find_ncu()
    if path is None:
        yield Missing(METHOD, "ncu is not installed: it comes with the CUDA toolkit's Nsight Compute")
        return
    command = [path, "--csv", "--metrics", METRIC, "--clock-control", "none", "--profile-from-start", "off"]
    command += [sys.executable, "-m", "groundspeed.calibrate.ncu_target", *probes]
    start = perf_counter()
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=_LIMIT, check=False
        )
        spans = durations(done.stdout, len(probes))
    except subprocess.TimeoutExpired:
        yield Missing(METHOD, f"took more than {_LIMIT:.0f} s")
    except NoFigures as why:
        yield Missing(METHOD, complaint(done.stdout + done.stderr) or f"{why} (status {done.returncode})")
    else:
        each = (perf_counter() - start) / len(probes)
        for name, values in zip(probes, spans, strict=True):
            yield Reading(METHOD, name, 0, median(values), len(values), each)


def durations(printed: str, probes: int) -> list[list[float]]:
    """From what ``ncu --csv`` printed, ns of every call of each probe; marks part the calls.

    Raises NoFigures where it holds no table, or other calls than were made.
    """
    calls: list[float] = []
    for name, span in _kernels(printed):
        if name.startswith(MARK):
            calls.append(0.0)
        elif calls:
            calls[-1] += span
    if len(calls) != REPEATS * probes:
        raise NoFigures(f"ncu shows {len(calls)} calls, {REPEATS * probes} were made")
    if not all(calls):
        raise NoFigures("ncu shows calls without a kernel")
    return [calls[place::probes] for place in range(probes)]


def complaint(said: str) -> str:
    """The reason that ncu gives, empty when it gives none."""
    if "ERR_NVGPUCTRPERM" in said:
        return "not permitted: ERR_NVGPUCTRPERM (the driver lets administrators alone read performance counters)"
    errors = [line.partition("==ERROR==")[2].strip() for line in said.splitlines() if "==ERROR==" in line]
    return errors[0][:300] if errors else ""


def _kernels(printed: str) -> Iterator[tuple[str, float]]:
    """Kernel names and ns in the order of launch: ncu writes a line a metric, or on its raw page a line a kernel."""
    lines = printed.splitlines()
    start = next((at for at, line in enumerate(lines) if '"Kernel Name"' in line), None)
    if start is None:
        raise NoFigures("ncu printed no table")
    table = list(csv.DictReader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"')))))
    units = table[0] if table and METRIC in table[0] else {}  # the raw page: units in a line of their own
    for row in table[1:] if units else table:
        if units:
            yield row["Kernel Name"], _nanoseconds(row[METRIC], units[METRIC])
        elif row.get("Metric Name") == METRIC:
            yield row["Kernel Name"], _nanoseconds(row["Metric Value"], row["Metric Unit"])


def _nanoseconds(value: str, unit: str) -> float:
    try:
        span = float(value.replace(",", "")) * _UNITS[unit]
    except (ValueError, KeyError) as error:
        raise NoFigures(f"ncu printed {value!r} {unit!r} for a duration") from error
    if not math.isfinite(span):
        raise NoFigures(f"ncu printed {value!r} for a duration")
    return span
