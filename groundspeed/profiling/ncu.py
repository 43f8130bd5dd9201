"""Nsight Compute: which counters are asked for and why, how it is called, and its CSV.

Every name exists on sm_80 and sm_90: they are the counters that NVIDIA's "Nvprof Metric Comparison" gives for compute
capability 7.0 and later, and those of the sections SpeedOfLight, LaunchStats, Occupancy and WarpStateStats that have
kept their names since. A test asks an installed ncu for each (``ncu --query-metrics --chips``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from groundspeed.profiling.kernels import Dim3, Launch

_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_ACTIVE = "avg.pct_of_peak_sustained_active"
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

# Why warps wait, in Nsight Compute's terms and in words: the reasons that a kernel's author can do something about.
STALLS = {
    "long_scoreboard": "global or local memory",
    "short_scoreboard": "shared memory",
    "barrier": "a barrier",
    "mio_throttle": "the queue of shared-memory and special instructions",
    "lg_throttle": "the queue of global and local accesses",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "wait": "the instruction before",
}

# Key → counter. Durations are taken at the clocks as they are, with caches emptied before every kernel.
METRICS: Mapping[str, str] = {
    "duration": "gpu__time_duration.sum",
    # How near each part is to its own peak: the largest one bounds the kernel.
    "sm_pct": f"sm__throughput.{_ELAPSED}",
    "dram_pct": f"dram__throughput.{_ELAPSED}",
    "l2_pct": f"lts__throughput.{_ELAPSED}",
    "l1_pct": f"l1tex__throughput.{_ACTIVE}",
    "issue_pct": f"smsp__issue_active.{_ACTIVE}",
    # Bytes that crossed DRAM, to hold against the bytes that the operator must move.
    "dram_read": "dram__bytes_read.sum",
    "dram_write": "dram__bytes_write.sum",
    "l1_hit_pct": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    # Warps in flight: what there are, what would fit, and what keeps more from fitting.
    "occupancy_pct": f"sm__warps_active.{_ACTIVE}",
    "theoretical_pct": "sm__maximum_warps_per_active_cycle_pct",
    "limit_warps": "launch__occupancy_limit_warps",
    "limit_blocks": "launch__occupancy_limit_blocks",
    "limit_registers": "launch__occupancy_limit_registers",
    "limit_shared": "launch__occupancy_limit_shared_mem",
    "waves": "launch__waves_per_multiprocessor",
    "registers": "launch__registers_per_thread",
    "shared_static": "launch__shared_mem_per_block_static",
    "shared_dynamic": "launch__shared_mem_per_block_dynamic",
    # Threads that take part in an instruction, of 32; branches that a whole warp takes alike.
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "branch_pct": "smsp__sass_average_branch_targets_threads_uniform.pct",
    # Wavefronts are passes of shared memory; conflicts are those that one access needed beyond its first.
    "conflicts_load": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "conflicts_store": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "wavefronts_load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "wavefronts_store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    # Instructions that touch local memory: spilled registers, and arrays indexed at run time.
    "local_loads": "smsp__sass_inst_executed_op_local_ld.sum",
    "local_stores": "smsp__sass_inst_executed_op_local_st.sum",
    # Cycles that a warp waits for each reason between two instructions.
    **{f"stall_{name}": _STALL.format(name) for name in STALLS},
}

_TIMES = {"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9}
_UNITS = {**_TIMES, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}

_REFUSALS = (
    (
        r"ERR_NVGPUCTRPERM",
        "the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM): run as root, give the "
        "container the capability SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        r"Failed to initialize the profiler|LibraryNotLoaded",
        "ncu cannot load the driver's profiling library here, as in a sandboxed container: run outside of it",
    ),
    (
        r"lock file|being profiled|already in use|ProfilerInUse|DeviceIsBeingProfiled",
        "another profiler is using this GPU: run again when it has ended",
    ),
    (r"Profiling is not supported", "ncu does not support this GPU: install a release that does"),
    (r"No kernels were profiled", "no kernel ran on the GPU"),
)


def ncu_command(tool: Path, output: Path, metrics: Sequence[str], program: Sequence[str]) -> list[str]:
    """The whole command; the CSV goes to ``output``.

    The clocks stay as they are (``--clock-control none``): ncu would else lower them to the base clock, at which no
    other measurement of ours is taken. Kernels are looked at only between cudaProfilerStart and -Stop.
    """
    return [
        str(tool),
        *("--target-processes", "application-only", "--profile-from-start", "off"),
        *("--clock-control", "none", "--cache-control", "all"),
        *("--metrics", ",".join(metrics)),
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", str(output)),
        *program,
    ]


def refusal(said: str) -> str:
    """Why ncu profiled nothing, and what to do about it; its own last error where it is none of the known ones."""
    for pattern, reason in _REFUSALS:
        if re.search(pattern, said):
            return reason
    errors = [line.removeprefix("==ERROR==").strip() for line in said.splitlines() if line.startswith("==ERROR==")]
    return f"ncu: {errors[-1]}" if errors else "ncu wrote no counters"


def unknown_metrics(said: str, metrics: Sequence[str]) -> tuple[str, ...]:
    """Of these counters the ones that ncu says it cannot find."""
    lines = [line for line in said.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    told = " ".join(line for line in lines if "metric" in line.lower())
    return tuple(name for name in metrics if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", told))


def parse_csv(text: str) -> list[Launch]:
    """Launches in the order in which they ran; nothing when there is no table. Lines around the table are passed over.

    Both of ncu's layouts are read: a launch a row with units in the second row (``--page raw``), and a counter a row.
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return []
    header, *rows = list(csv.reader(lines[start:]))
    rows = [row for row in rows if len(row) == len(header)]
    if "Metric Name" in header:
        return [_launch(row, values) for row, values in _by_counter(header, rows)]
    units, rows = (rows[0], rows[1:]) if rows and not rows[0][0] else ([""] * len(header), rows)
    known = {name: key for key, name in METRICS.items()}
    launches = []
    for row in rows:
        values = {}
        for name, unit, cell in zip(header, units, row, strict=True):
            value = _value(cell, unit) if name in known else None
            if value is not None:
                values[known[name]] = value
        launches.append(_launch(dict(zip(header, row, strict=True)), values))
    return launches


def _by_counter(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[tuple[dict[str, str], dict[str, float]]]:
    known = {name: key for key, name in METRICS.items()}
    found: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    for cells in rows:
        row = dict(zip(header, cells, strict=True))
        _, values = found.setdefault(row["ID"], (row, {}))
        value = _value(row["Metric Value"], row["Metric Unit"])
        if row["Metric Name"] in known and value is not None:
            values[known[row["Metric Name"]]] = value
    yield from found.values()


def _launch(row: Mapping[str, str], values: Mapping[str, float]) -> Launch:
    shared = [values[key] for key in ("shared_static", "shared_dynamic") if key in values]
    return Launch(
        name=row.get("Kernel Name", ""),
        duration_ns=values.get("duration", 0.0),
        grid=_dims(row.get("Grid Size", "")),
        block=_dims(row.get("Block Size", "")),
        registers=int(values["registers"]) if "registers" in values else None,
        shared_bytes=int(sum(shared)) if shared else None,
        counters=values,
    )


def _value(cell: str, unit: str) -> float | None:
    """A number in ns, bytes, per cent or as it is. Thousands are set apart by commas; ``n/a`` is no number."""
    try:
        return float(cell.replace(",", "")) * _UNITS.get(unit.partition("/")[0], 1.0)
    except ValueError:
        return None


def _dims(cell: str) -> Dim3 | None:
    numbers = re.findall(r"\d+", cell)
    return (int(numbers[0]), int(numbers[1]), int(numbers[2])) if len(numbers) == 3 else None
