"""Tables as ncu and nsys write them, with values of our own."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from groundspeed.profiling.ncu import METRICS

VEC4 = "void (anonymous namespace)::relu_vec4<float, 4>(const float *, float *, long)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2, T3)"
_FIXED = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
_UNIT = {"duration": "ns", "dram_read": "byte", "dram_write": "byte", "registers": "register/thread"}

# A memory-bound kernel, a small one that waits, a matmul with conflicts and spills.
STREAMING = {
    "duration": 30112.0,
    "sm_pct": 21.4,
    "dram_pct": 91.3,
    "l2_pct": 62.0,
    "l1_pct": 30.0,
    "issue_pct": 12.0,
    "dram_read": 67_108_864.0,
    "dram_write": 41_943_040.0,
    "l1_hit_pct": 0.0,
    "l2_hit_pct": 49.7,
    "occupancy_pct": 83.0,
    "theoretical_pct": 100.0,
    "limit_warps": 8.0,
    "limit_blocks": 32.0,
    "limit_registers": 12.0,
    "limit_shared": 32.0,
    "waves": 7.76,
    "registers": 20.0,
    "shared_static": 0.0,
    "shared_dynamic": 0.0,
    "threads_per_instruction": 32.0,
    "branch_pct": 100.0,
    "conflicts_load": 0.0,
    "conflicts_store": 0.0,
    "wavefronts_load": 0.0,
    "wavefronts_store": 0.0,
    "local_loads": 0.0,
    "local_stores": 0.0,
    "stall_long_scoreboard": 41.2,
    "stall_wait": 2.1,
    "stall_barrier": 0.0,
}
SMALL = {**STREAMING, "duration": 2300.0, "dram_pct": 12.0, "l2_pct": 9.0, "l1_pct": 8.0, "sm_pct": 4.0, "waves": 0.06}
WAITING = {**STREAMING, "dram_pct": 38.0, "l2_pct": 30.0, "l1_pct": 33.0, "sm_pct": 25.0, "waves": 4.0}
TROUBLED = {
    **STREAMING,
    "duration": 1_500_000.0,
    "sm_pct": 88.0,
    "dram_pct": 20.0,
    "l1_pct": 71.0,
    "l2_pct": 25.0,
    "conflicts_load": 300.0,
    "conflicts_store": 100.0,
    "wavefronts_load": 900.0,
    "wavefronts_store": 100.0,
    "local_loads": 12_345.0,
    "local_stores": 600.0,
    "threads_per_instruction": 21.5,
    "registers": 168.0,
    "shared_dynamic": 49_152.0,
    "occupancy_pct": 16.0,
    "theoretical_pct": 18.75,
}


def ncu_csv(*launches: tuple[str, Mapping[str, float]], commas: bool = True) -> str:
    """``--page raw``: a launch a row, units in the row below the header, the tool's own lines around."""
    keys = list(dict.fromkeys(key for _, values in launches for key in values))
    rows: list[Sequence[str]] = [
        [*_FIXED, *(METRICS[key] for key in keys)],
        [*("" for _ in _FIXED), *(_UNIT.get(key, "%" if key.endswith("_pct") else "") for key in keys)],
    ]
    for number, (name, values) in enumerate(launches):
        cells = [_cell(values[key], commas) if key in values else "n/a" for key in keys]
        fixed = [str(number), "17", "python3", "127.0.0.1", name, "1", "7", "(256, 1, 1)", "(8192, 1, 1)", "0", "9.0"]
        rows.append([*fixed, *cells])
    return (
        f"==PROF== Connected to process 17 (/usr/bin/python3.12)\n{_csv(rows)}==PROF== Disconnected from process 17\n"
    )


def ncu_csv_by_counter(*launches: tuple[str, Mapping[str, float]]) -> str:
    """``--page details``: a counter a row."""
    rows: list[Sequence[str]] = [[*_FIXED, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]]
    for number, (name, values) in enumerate(launches):
        fixed = [str(number), "17", "python3", "127.0.0.1", name, "1", "7", "(256, 1, 1)", "(8192, 1, 1)", "0", "9.0"]
        for key, value in values.items():
            section = "Command line profiler metrics"
            rows.append([*fixed, section, METRICS[key], _UNIT.get(key, ""), _cell(value, commas=True)])
    return _csv(rows)


def _cell(value: float, commas: bool) -> str:
    return f"{value:,.2f}" if commas else f"{value:.2f}"


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


NSYS = """
NOTICE: Existing SQLite export found: report.sqlite
Processing [report.sqlite] with [cuda_gpu_trace.py]...

Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
9695093,265888,65,128,2,1,256,1,1,137,0.001,0.033,,,,,NVIDIA H200 (0),1,,7,"void gemm<float, 4>(const float *)"
9961685,1024,67,,,,,,,,,,0.004,4000.0,,Device,NVIDIA H200 (0),1,,7,[CUDA memset]
9971685,265000,69,128,2,1,256,1,1,137,0.001,0.033,,,,,NVIDIA H200 (0),1,,7,"void gemm<float, 4>(const float *)"
"""
