"""Writes a results folder of the size that the dashboard is held to: 2,000 files, 1.2 million rows.

    python tests/perf/generate_results.py DIR [--files 2000] [--rows 1200000] [--seed 0]

Half the files are our records (one machine, 10 operators, a run a commit) with a third of the rows, each row with its
30 samples of four quantities; the other half are asv's, of another project on two machines, with parameters, failures
and skips. Planted, so that a page over it has something to show: ``triton_row`` of the first operator is 5 % slower
in the last third of the commits; ``cuda_warp`` of the second fails in the newest run; some measurements are unstable.
The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path

import numpy as np

from groundspeed.records import (
    QUANTITIES,
    Accuracy,
    Ceilings,
    Clocks,
    Environment,
    Footer,
    Header,
    Measurement,
    Record,
    record_path,
    write_record,
)

OPERATORS = (
    *("relu", "softmax", "normalize_color", "matmul", "layer_norm"),
    *("gelu", "rms_norm", "rope", "cross_entropy", "conv2d"),
)
IMPLEMENTATIONS = (
    *("torch_eager", "torch_compile", "triton_row", "triton_split"),
    *("cuda_warp", "cuda_vec4", "cuda_naive", "cupy_raw"),
)
DTYPES = ("float32", "bfloat16")
MACHINE = "nvidia-h200"
ASV_MACHINES = ("ci runner (old)", "ci-runner-2")
ROUNDS = 30
START = datetime(2025, 1, 1, tzinfo=UTC)
SPEED = {"torch": 1.0, "triton": 0.8, "cuda": 0.75, "cupy": 0.9}  # time against eager, before noise


@dataclass(frozen=True)
class Plan:
    """How much of what."""

    out: Path
    commits: int  # of our records: one run a commit, a file an operator
    shapes: int  # of one operator
    asv_commits: int
    asv_benchmarks: int  # in one file
    seed: int

    @property
    def files(self) -> int:
        return self.commits * len(OPERATORS) + self.asv_commits * len(ASV_MACHINES)

    @property
    def rows(self) -> int:
        ours = self.shapes * len(DTYPES) * len(IMPLEMENTATIONS)
        return self.commits * len(OPERATORS) * ours + self.asv_commits * len(ASV_MACHINES) * self.asv_benchmarks * 20


def plan(out: Path, files: int = 2000, rows: int = 1_200_000, seed: int = 0) -> Plan:
    """A plan as close to the wanted sizes as whole sweeps allow (exact for the defaults)."""
    commits = max(1, files // 2 // len(OPERATORS))
    asv_commits = max(1, files // 2 // len(ASV_MACHINES))
    shapes = max(1, round(rows / 3 / (commits * len(OPERATORS) * len(DTYPES) * len(IMPLEMENTATIONS))))
    benchmarks = max(1, round(rows * 2 / 3 / (asv_commits * len(ASV_MACHINES) * 20)))
    return Plan(out, commits, shapes, asv_commits, benchmarks, seed)


def generate(todo: Plan, processes: int = 2) -> None:
    """Write everything. Existing files are in the way: the folder should be new."""
    todo.out.mkdir(parents=True, exist_ok=True)
    _write_described(todo)
    jobs = [(todo, "ours", i) for i in range(todo.commits)] + [(todo, "asv", i) for i in range(todo.asv_commits)]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(_write, jobs, chunksize=8):
            pass


def write_run(todo: Plan, commit: int) -> list[Path]:
    """One run of ours: a record file an operator. Also what a test uses to let a new run appear."""
    return [_write_record(todo, commit, operator) for operator in range(len(OPERATORS))]


def _write(job: tuple[Plan, str, int]) -> None:
    todo, kind, index = job
    if kind == "ours":
        write_run(todo, index)
    else:
        for machine in ASV_MACHINES:
            _write_asv(todo, index, machine)


def _hash(*parts: object) -> str:
    return sha1(repr(parts).encode()).hexdigest()


def _write_record(todo: Plan, commit: int, operator: int) -> Path:
    rng = np.random.default_rng((todo.seed, commit, operator))
    time = START + timedelta(hours=6 * commit)
    name = OPERATORS[operator]
    header = Header(
        run_id=f"{time:%Y%m%dT%H%M%SZ}-{_hash('run', commit)[:6]}",
        operator=name,
        machine=MACHINE,
        started=(time + timedelta(hours=1)).isoformat(),
        commit=_hash("commit", commit),
        commit_time=time.isoformat(),
        environment=Environment(
            device="cuda",
            device_name="NVIDIA H200",
            python="3.12.3",
            os="Linux",
            driver="580.65" if commit < todo.commits // 2 else "580.82",
            cuda="13.0",
            torch="2.11.0",
            l2_bytes=60 << 20,
        ),
        bound="compute" if name in ("matmul", "conv2d") else "memory",
        ladders={"idea": ["torch_eager", "cuda_naive", "cuda_vec4", "cuda_warp"]},
        ideas={implementation: f"The idea of {implementation}." for implementation in IMPLEMENTATIONS},
        ceilings=Ceilings(copy=4.31e12, read=4.39e12, write=4.68e12, matmul={"bfloat16": 783e12, "float32": 51e12}),
        command=f"groundspeed run {name}",
    )
    measurements = tuple(_measurements(todo, rng, commit, operator))
    path = record_path(todo.out, MACHINE, header.run_id, name)
    write_record(path, Record(header, measurements, Footer(len(measurements), {"measure": 40.0, "compile": 9.5})))
    return path


def _measurements(todo: Plan, rng: np.random.Generator, commit: int, operator: int) -> Iterator[Measurement]:
    for size, dtype in itertools.product(range(todo.shapes), DTYPES):
        shape: dict[str, int | str] = {"M": 128 * (size + 1), "N": 1024 + 256 * (operator + size % 7)}
        width = 4 if dtype == "float32" else 2
        traffic = 2 * width * int(shape["M"]) * int(shape["N"])
        eager = 1500 + traffic / 4000  # ns: a launch, and 4 TB/s
        for implementation in IMPLEMENTATIONS:
            backend = implementation.partition("_")[0]
            common = {
                "implementation": implementation,
                "dtype": dtype,
                "shape": shape,
                "case_digest": _hash(operator, dtype, size)[:12],
                "implementation_digest": _hash(operator, implementation, commit // 20)[:12],
            }
            if backend == "cupy" and dtype == "bfloat16":
                yield Measurement(**common, status="skipped", reason="CuPy has no bfloat16 arrays")
                continue
            if operator == 1 and implementation == "cuda_warp" and commit == todo.commits - 1:
                yield Measurement(**common, status="failed", failure="incorrect", reason="max error 0.3, allowed 0.01")
                continue
            slower = 1.05 if operator == 0 and implementation == "triton_row" and commit >= todo.commits * 2 // 3 else 1
            time = eager * SPEED[backend] * slower * rng.lognormal(0, 0.003)
            yield Measurement(
                **common,
                status="ok",
                timer="cupti",
                unstable="interval ±0.8 % after 2 s" if rng.random() < 0.01 else "",
                samples=_samples(rng, time),
                kernels=[f"{implementation}_kernel"],
                prepare_ns=3e8 if backend != "torch" else 1e5,
                first_run_ns=5e5,
                peak_memory_bytes=traffic // 2,
                energy_nj=time * 400,
                accuracy=Accuracy(1e-6 * width, 2e-6, 1e-7, 0.1),
                flops=traffic,
                bytes_read=traffic // 2,
                bytes_written=traffic // 2,
                items=int(shape["M"]),
                clocks=Clocks((1905, 1980), 3201, 510.0, 52),
            )


def _samples(rng: np.random.Generator, time: float) -> dict[str, list[float]]:
    """ns, a tenth of a ns fine, as CUPTI and the clock give them."""
    scales = dict(zip(QUANTITIES, (time, time * 0.9, time + 9000, 6000.0), strict=True))
    noise = rng.lognormal(0, 0.005, (len(QUANTITIES), ROUNDS))
    return {name: np.round(scale * row, 1).tolist() for (name, scale), row in zip(scales.items(), noise, strict=True)}


def _asv_name(index: int) -> str:
    kind, unit = (("time", "seconds"), ("peakmem", "bytes"), ("track", "points"))[index % 3]
    del unit
    return f"suite_{index // 10}.Group{index % 10}.{kind}_thing_{index}"


_ASV_PARAMS = [["10", "100", "1000", "10000", "100000"], ["'a'", "'NaN'", "<class 'list'>", "None"]]


def _write_described(todo: Plan) -> None:
    """benchmarks.json and the machines' files."""
    benchmarks: dict[str, object] = {"version": 2}
    for index in range(todo.asv_benchmarks):
        name = _asv_name(index)
        benchmarks[name] = {
            "name": name,
            "type": ("time", "peakmemory", "track")[index % 3],
            "unit": ("seconds", "bytes", "points")[index % 3],
            "params": _ASV_PARAMS,
            "param_names": ["n", "kind"],
            "version": _hash(name),
        }
    (todo.out / "benchmarks.json").write_text(json.dumps(benchmarks, indent=1), encoding="utf-8")
    for machine in (MACHINE, *ASV_MACHINES):
        (todo.out / machine).mkdir(exist_ok=True)
        described = {"machine": machine, "arch": "x86_64", "cpu": "a CPU", "os": "Linux", "ram": "8 GB", "version": 1}
        (todo.out / machine / "machine.json").write_text(json.dumps(described), encoding="utf-8")


def _write_asv(todo: Plan, commit: int, machine: str) -> None:
    rng = np.random.default_rng((todo.seed, commit, ASV_MACHINES.index(machine), 7))
    time = START + timedelta(hours=3 * commit)
    started = int(time.timestamp() * 1000) + 3_600_000
    results = {}
    for index in range(todo.asv_benchmarks):
        values: list[float | None] = [float(f"{v:.6g}") for v in rng.lognormal(index % 5 - 8, 0.02, 20)]
        if index % 11 == 0:
            values[3] = None
        if index % 13 == 0:
            values[7] = float("nan")
        row: list[object] = [values, _ASV_PARAMS, _hash(_asv_name(index)), started + index, 1.25]
        if index % 3 == 0:  # asv keeps statistics of times only
            known = [v is not None and v == v for v in values]
            row += [
                [float(f"{v * 0.98:.5g}") if k else None for v, k in zip(values, known, strict=True)],  # type: ignore[operator]
                [float(f"{v * 1.02:.5g}") if k else None for v, k in zip(values, known, strict=True)],  # type: ignore[operator]
                [float(f"{v * 0.99:.5g}") if k else None for v, k in zip(values, known, strict=True)],  # type: ignore[operator]
                [float(f"{v * 1.01:.5g}") if k else None for v, k in zip(values, known, strict=True)],  # type: ignore[operator]
                [10 if k else None for k in known],
                [10 if k else None for k in known],
            ]
        results[_asv_name(index)] = row
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]
    document = {
        "commit_hash": _hash("asv", commit),
        "env_name": "virtualenv-py3.12-numpy",
        "date": int(time.timestamp() * 1000),
        "params": {
            "machine": machine,
            "arch": "x86_64",
            "cpu": "a CPU",
            "os": "Linux",
            "ram": "8 GB",
            "python": "3.12",
        },
        "python": "3.12",
        "requirements": {"numpy": ""},
        "env_vars": {},
        "result_columns": columns,
        "results": results,
        "durations": {},
        "version": 2,
    }
    name = f"{document['commit_hash'][:8]}-{document['env_name']}.json"  # type: ignore[index]
    (todo.out / machine / name).write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("out", type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    todo = plan(asked.out, asked.files, asked.rows, asked.seed)
    generate(todo)
    print(f"{asked.out}: {todo.files} files, {todo.rows} rows")


if __name__ == "__main__":
    main()
