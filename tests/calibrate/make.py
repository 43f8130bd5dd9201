"""A calibration made up for tests: no figure in it was measured."""

from __future__ import annotations

from groundspeed.calibrate.schema import Calibration, Cost, Missing, Probed, Ratio, Reading
from groundspeed.records import Ceilings, Environment

GPU = Environment(device="cuda", device_name="NVIDIA Test", python="3.12.3", os="Linux", torch="2.11.0", driver="580.1")
PROBES = (
    Probed("relu_64KiB", "relu", "float32", {"N": 16384}),
    Probed("relu_64MiB", "relu", "float32", {"N": 1 << 24}),
    Probed("matmul_2048", "matmul", "bfloat16", {"M": 2048, "N": 2048}),
)
VALUES = {"relu_64KiB": 1_420.0, "relu_64MiB": 30_000.0, "matmul_2048": 40_000.0}
OVER = {"cupti": 1.0, "cupti_hot": 0.9, "cupti_memset": 1.1, "nvbench": 1.2, "ncu": 1.03}


def readings(method: str, scatter: float = 0.001, processes: int = 12, **values: float) -> list[Reading]:
    """Of every probe: values a ``scatter`` above and below the middle by turns."""
    return [
        Reading(method, probe, process, middle * OVER[method] * (1 + scatter * (-1) ** process), 60, 0.2, 0.004)
        for probe, middle in {**VALUES, **values}.items()
        for process in range(processes)
    ]


def calibration(*more: Reading, **changes) -> Calibration:
    own = [*readings("cupti"), *readings("cupti_hot")]
    ratios = [
        Ratio(f"device_{which}", probe, process, 0.001 * (-1) ** process)
        for which in ("cold", "hot")
        for probe in VALUES
        for process in range(12)
    ]
    fields = {
        "run_id": "20260101T000000Z-aaaa",
        "machine": "nvidia-h200",
        "started": "2026-01-01T00:00:00+00:00",
        "environment": GPU,
        "processes": 12,
        "beside": 4,
        "rounds": 30,
        "seconds": 200.0,
        "timer": "cupti",
        "probes": list(PROBES),
        "readings": [*own, *more],
        "ratios": ratios,
        "commit": "0123456789abcdef",
        "costs": [Cost("launch", process, 2_000.0) for process in range(12)],
        "ceilings": [
            Ceilings(copy=4.3e12, read=4.4e12, write=4.7e12, matmul={"bfloat16": 7.8e14}, mixes={"2:1": 4.2e12})
        ],
        "missing": [Missing("do_bench", "not installed; type: pip install triton")],
    }
    return Calibration(**{**fields, **changes})
