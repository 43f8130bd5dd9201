"""Writes a small results folder with everything a page must cope with. The figures are invented and say so.

Two machines, four operators, twelve commits; a slowdown from commit 8 on in softmax/triton_row; a driver change; a
changed case; skipped, failed and unstable rows; a run with a dirty tree.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from groundspeed.records import (
    Accuracy,
    Ceilings,
    Clocks,
    Environment,
    Footer,
    Header,
    KernelResources,
    Measurement,
    Record,
    record_path,
    write_record,
)

GPU, CPU = "synthetic-gpu", "cpu-synthetic"
COMMITS = 12
SLOW_FROM = 8
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2}
OPERATORS = {
    "softmax": [{"M": 4096, "N": n} for n in (128, 512, 1024, 4096, 16384)],
    "relu": [{"N": 1 << k} for k in (12, 16, 20, 24, 28)],
    "swiglu": [{"B": b, "N": 65536} for b in (1, 8, 32, 128)],
    "matmul": [{"M": n, "N": n, "K": n} for n in (256, 1024, 2048, 4096)],
}
SPEED = {  # seconds a byte (or a FLOP) relative to eager's, and a fixed part in seconds
    "torch_eager": (1.0, 4e-6),
    "torch_compile": (0.72, 3e-6),
    "triton_row": (0.62, 1.8e-6),
    "cuda_naive": (1.35, 1.6e-6),
    "cuda_vec4": (0.58, 1.5e-6),
    "cupy_raw": (0.9, 2.2e-6),
}
LADDERS = {"vectors": ["cuda_naive", "cuda_vec4"], "all": ["torch_eager", "torch_compile", "triton_row", "cuda_vec4"]}
IDEAS = {
    "torch_eager": "PyTorch's own operator, one kernel for each step.",
    "torch_compile": "Inductor fuses the steps into one Triton kernel.",
    "triton_row": "One program a row, the row in registers: x is read once and y written once.",
    "cuda_naive": "One thread an element, one load and one store each.",
    "cuda_vec4": "Sixteen bytes a load: a quarter of the instructions for the same bytes.",
    "cupy_raw": "The same kernel through CuPy's RawKernel.",
}


def commit_hash(ordinal: int) -> str:
    return hashlib.sha1(f"synthetic {ordinal}".encode()).hexdigest()


def _cost(operator: str, dtype: str, shape: dict[str, int]) -> tuple[int, int, int]:
    elements = shape.get("M", 1) * shape.get("B", 1) * shape["N"]
    size = ITEMSIZE[dtype]
    if operator == "matmul":
        m, n, k = shape["M"], shape["N"], shape["K"]
        return 2 * m * n * k, (m * k + k * n) * size, m * n * size
    return 5 * elements, elements * size, elements * size


def seconds(operator: str, implementation: str, dtype: str, shape: dict[str, int], ordinal: int) -> float:
    """The true median that the samples scatter around."""
    factor, fixed = SPEED[implementation]
    flops, read, write = _cost(operator, dtype, shape)
    ideal = flops / (6e14 if dtype != "float32" else 5e13) if operator == "matmul" else (read + write) / 3.6e12
    slow = 1.09 if (operator, implementation) == ("softmax", "triton_row") and ordinal >= SLOW_FROM else 1.0
    return (fixed + ideal * factor) * slow


def _measure(operator: str, name: str, dtype: str, shape: dict[str, int], ordinal: int, device: str) -> Measurement:
    base = {
        "implementation": name,
        "dtype": dtype,
        "shape": shape,
        "case_digest": f"{operator}-{dtype}-1",
        "implementation_digest": f"{name}-{1 + (ordinal >= SLOW_FROM)}",
    }
    if device == "cpu" and not name.startswith("torch"):
        return Measurement(**base, status="skipped", reason="needs an NVIDIA GPU")
    if name == "cupy_raw" and dtype == "bfloat16":
        return Measurement(**base, status="skipped", reason="CuPy has no bfloat16 arrays")
    if name == "cuda_naive" and operator == "matmul" and shape["M"] >= 4096:
        return Measurement(**base, status="failed", failure="timeout", reason="one call took longer than 2 s")
    if name == "cuda_vec4" and operator == "softmax" and dtype == "float16" and shape["N"] == 128:
        return Measurement(
            **base,
            status="failed",
            failure="incorrect",
            reason="element [3, 17]: expected 0.0071, got 0 (tolerance 1e-3)",
        )
    key = f"{operator} {name} {dtype} {shape} {ordinal} {device}".encode()
    generator = np.random.default_rng(int.from_bytes(hashlib.sha1(key).digest()[:8]))
    middle = seconds(operator, name, dtype, shape, ordinal) * (60 if device == "cpu" else 1) * 1e9
    middle *= 1 + generator.normal(0, 0.002)
    rounds = 60

    def draw(factor: float, offset: float = 0.0) -> list[float]:
        values = (middle * factor + offset) * (1 + np.abs(generator.normal(0, 0.004, rounds)))
        values[generator.random(rounds) < 0.02] *= 1.1
        return [round(float(v), 1) for v in values]

    flops, read, write = _cost(operator, dtype, shape)
    error = {"float32": 2e-7, "float16": 5e-4, "bfloat16": 4e-3}[dtype]
    return Measurement(
        **base,
        status="ok",
        unstable="interval ±1.8 % after 0.5 s" if name == "torch_compile" and shape.get("N") == 512 else "",
        timer="cupti" if device == "cuda" else "clock",
        samples={"device_cold": draw(1), "device_hot": draw(0.8), "call": draw(1, 9000), "host": draw(0.01, 6000)},
        kernels=[f"{name}_kernel"],
        prepare_ns=3e8 if name == "torch_compile" else 2e6,
        first_run_ns=5e5,
        peak_memory_bytes=write * (2 if name == "torch_eager" else 1),
        energy_nj=middle * 450,
        accuracy=Accuracy(max_abs=error, max_rel=error * 2, norm=error / 3, tolerance_used=0.2),
        flops=flops,
        bytes_read=read,
        bytes_written=write,
        items=shape.get("B", shape.get("M", 1)),
        resources=[KernelResources(f"{name}_kernel", registers=40, shared_bytes=4096)] if "_" in name else [],
        tuned="BLOCK=1024, num_warps=8" if name == "triton_row" else "",
        clocks=Clocks(sm_mhz=(1965, 1980), memory_mhz=3201, power_w=412.0, temperature_c=51),
    )


def _environment(device: str, ordinal: int) -> Environment:
    if device == "cpu":
        return Environment(
            device="cpu",
            device_name="Synthetic CPU",
            python="3.12.3",
            os="Linux",
            cpu="Synthetic CPU",
            threads=2,
            torch="2.11.0",
        )
    return Environment(
        device="cuda",
        device_name="Synthetic GPU",
        python="3.12.3",
        os="Linux",
        cpu="Synthetic CPU",
        threads=16,
        device_count=1,
        driver="580.65" if ordinal < 5 else "580.82",
        cuda="13.0",
        capability="9.0",
        multiprocessors=132,
        l2_bytes=60 << 20,
        memory_bytes=141 << 30,
        power_cap_w=700.0,
        torch="2.11.0",
        triton="3.6.0",
        cupy="14.2.0",
    )


def write_run(results: Path, machine: str, ordinal: int, operators: tuple[str, ...] = tuple(OPERATORS)) -> list[Path]:
    """One run of one machine at one commit; returns the record files."""
    device = "cpu" if machine.startswith("cpu") else "cuda"
    when = START + timedelta(days=3 * ordinal)
    run_id = f"{when + timedelta(hours=2):%Y%m%dT%H%M%SZ}-{commit_hash(ordinal)[:8]}"
    paths = []
    for operator in operators:
        shapes = OPERATORS[operator]
        measurements = [
            _measure(operator, name, dtype, shape, ordinal, device)
            for shape in shapes
            for dtype in ITEMSIZE
            for name in SPEED
        ]
        header = Header(
            run_id=run_id,
            operator=operator,
            machine=machine,
            started=f"{when + timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}",
            environment=_environment(device, ordinal),
            commit=commit_hash(ordinal),
            commit_time=f"{when:%Y-%m-%dT%H:%M:%SZ}",
            dirty=ordinal == 3,
            tier="full",
            bound="compute" if operator == "matmul" else "memory",
            ladders=LADDERS,
            ideas=IDEAS,
            missing={"jax": "no JAX implementation yet"},
            ceilings=None
            if device == "cpu"
            else Ceilings(
                copy=4.31e12,
                read=4.39e12,
                write=4.68e12,
                matmul={"float32": 5.1e13, "float16": 7.37e14, "bfloat16": 7.83e14},
            ),
            command=f"groundspeed run {operator} --tier full",
        )
        path = record_path(results, machine, run_id, operator)
        write_record(path, Record(header, tuple(measurements), Footer(len(measurements), {"measure": 41.0})))
        paths.append(path)
    return paths


def write_results(results: Path, commits: int = COMMITS) -> Path:
    """The whole folder."""
    for ordinal in range(commits):
        write_run(results, GPU, ordinal)
    write_run(results, CPU, commits - 1)
    return results


if __name__ == "__main__":
    write_results(Path(sys.argv[1]))
