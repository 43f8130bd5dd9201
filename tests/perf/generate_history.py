"""Writes the results of years: 10,000 commits measured on 5 GPUs, 600 series each, in 600,000 record files.

    python tests/perf/generate_history.py DIR [--commits 10000] [--machines 5] [--operators 12] [--seed 0]

A machine's 600 series are 12 operators of 5 implementations on 10 cases; a commit is a run, and a run a file an
operator. Rows hold 7 samples of cold and hot device time and 5 of the call: fewer than a real sweep's, for the disk's
sake; what the store makes of a row is as wide as ever. Planted: an implementation's files change every 40 commits and
its speed by up to 2 % with them, the driver every 500 and torch every 1,500; the third case of an operator changes
half-way; one implementation fails in one commit of 97. The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha1
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from groundspeed.records import Accuracy, Ceilings, Environment, Footer, Header, Measurement, record_path

MACHINES = ("nvidia-h200", "nvidia-h100", "nvidia-a100", "nvidia-l4", "nvidia-b200", "nvidia-gh200", "nvidia-t4")
OPERATORS = (
    *("relu", "softmax", "normalize_color", "matmul", "layer_norm", "gelu"),
    *("rms_norm", "rope", "cross_entropy", "conv2d", "topk", "attention"),
)
IMPLEMENTATIONS = ("torch_eager", "torch_compile", "triton_row", "cuda_warp", "cupy_raw")
CASES = tuple((dtype, {"M": 128 << size, "N": 1024}) for size in range(5) for dtype in ("float32", "bfloat16"))
SERIES_OF_AN_OPERATOR = len(IMPLEMENTATIONS) * len(CASES)
DEVICE_ROUNDS, CALL_ROUNDS = 7, 5
START = datetime(2016, 1, 1, tzinfo=UTC)
APART = timedelta(hours=8)  # between two commits
CHUNK = 20  # commits that a worker process is handed at once


@dataclass(frozen=True)
class Years:
    """How much of what: a run a commit and machine, a file an operator."""

    out: Path
    commits: int = 10_000
    machines: int = 5
    operators: int = 12
    seed: int = 0

    @property
    def files(self) -> int:
        return self.commits * self.machines * self.operators

    @property
    def rows(self) -> int:
        return self.files * SERIES_OF_AN_OPERATOR


def generate(todo: Years, processes: int = 2) -> None:
    """Write every run into a new folder."""
    jobs = [(todo, range(at, min(at + CHUNK, todo.commits))) for at in range(0, todo.commits, CHUNK)]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(_write, jobs):
            pass


def _write(job: tuple[Years, range]) -> None:
    todo, commits = job
    for commit in commits:
        for machine in MACHINES[: todo.machines]:
            write_run(todo, machine, commit)


def write_run(todo: Years, machine: str, commit: int) -> list[Path]:
    """The files of one commit's run on one machine; also of a commit beyond the last one, for a run that arrives."""
    rng = np.random.default_rng((todo.seed, commit, MACHINES.index(machine)))
    paths = []
    for operator in OPERATORS[: todo.operators]:
        header = _header(todo, machine, commit, operator)
        path = record_path(todo.out, machine, header.run_id, operator)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = _measurements(todo, rng, machine, commit, operator)
        parts = [header, *rows, Footer(len(rows), {"measure": 9.5, "compile": 2.5})]
        # Not write_record: that waits for the disk each time, which 600,000 files have no use for.
        path.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, parts)) + b"\n", 1, mtime=0))
        paths.append(path)
    return paths


@cache
def _hash(*parts: object) -> str:
    return sha1(repr(parts).encode()).hexdigest()


def _header(todo: Years, machine: str, commit: int, operator: str) -> Header:
    time = START + APART * commit
    hashed = _hash("commit", commit)
    return Header(
        run_id=f"{time + timedelta(hours=1):%Y%m%dT%H%M%SZ}-{hashed[:8]}-{_hash('run', machine, commit)[:4]}",
        operator=operator,
        machine=machine,
        started=(time + timedelta(hours=1)).isoformat(),
        commit=hashed,
        commit_time=time.isoformat(),
        environment=Environment(
            device="cuda",
            device_name=machine.upper().replace("-", " "),
            python="3.12.3",
            os="Linux",
            driver=f"{550 + commit // 500}.10",
            cuda="13.0",
            torch=f"2.{commit // 1500}.0",
            l2_bytes=60 << 20,
        ),
        bound="memory",
        ideas={name: f"The idea of {name}." for name in IMPLEMENTATIONS},
        ceilings=Ceilings(copy=4.31e12, read=4.39e12, write=4.68e12, matmul={"bfloat16": 783e12, "float32": 51e12}),
        command=f"groundspeed run {operator}",
    )


@cache
def _pace(seed: int, machine: str, operator: str, implementation: str, revision: int) -> float:
    """What one revision of an implementation's files takes, over what the first one would."""
    digest = int(_hash(seed, machine, operator, implementation, revision)[:8], 16)
    return 1.0 + 0.02 * (digest / 0xFFFFFFFF - 0.5)


def _measurements(
    todo: Years, rng: np.random.Generator, machine: str, commit: int, operator: str
) -> tuple[Measurement, ...]:
    noise = rng.lognormal(0, 0.005, (SERIES_OF_AN_OPERATOR, 2 * DEVICE_ROUNDS + CALL_ROUNDS))
    noise *= rng.lognormal(0, 0.004, (SERIES_OF_AN_OPERATOR, 1))
    series = [(case, implementation) for case in range(len(CASES)) for implementation in IMPLEMENTATIONS]
    return tuple(
        _measurement(todo, noise[i], machine, commit, operator, case, implementation)
        for i, (case, implementation) in enumerate(series)
    )


def _measurement(
    todo: Years,
    noise: npt.NDArray[np.float64],
    machine: str,
    commit: int,
    operator: str,
    case: int,
    implementation: str,
) -> Measurement:
    dtype, shape = CASES[case]
    later = case == 2 and commit >= todo.commits // 2
    common = {
        "implementation": implementation,
        "dtype": dtype,
        "shape": shape,
        "case_digest": _hash(operator, case, later)[:12],
        "implementation_digest": _hash(operator, implementation, commit // 40)[:12],
    }
    if implementation == "cuda_warp" and commit % 97 == 96:
        return Measurement(**common, status="failed", failure="build", reason="nvcc: error: identifier is undefined")
    traffic = 2 * (4 if dtype == "float32" else 2) * shape["M"] * shape["N"]
    pace = _pace(todo.seed, machine, operator, implementation, commit // 40)
    time = (1500 + traffic / 4000) * pace * (1.1 if later else 1.0)
    cold, hot = noise[:DEVICE_ROUNDS] * time, noise[DEVICE_ROUNDS : 2 * DEVICE_ROUNDS] * time * 0.9
    call = noise[2 * DEVICE_ROUNDS :] * (time + 9000)
    return Measurement(
        **common,
        status="ok",
        timer="cupti",
        samples={
            "device_cold": np.round(cold, 1).tolist(),
            "device_hot": np.round(hot, 1).tolist(),
            "call": np.round(call, 1).tolist(),
        },
        prepare_ns=3e8,
        first_run_ns=5e5,
        peak_memory_bytes=traffic // 2,
        energy_nj=round(time * 400, 1),
        accuracy=Accuracy(1e-6, 2e-6, 1e-7, 0.1),
        flops=traffic,
        bytes_read=traffic // 2,
        bytes_written=traffic // 2,
        items=shape["M"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the results of years.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--commits", type=int, default=Years.commits)
    parser.add_argument("--machines", type=int, default=Years.machines)
    parser.add_argument("--operators", type=int, default=Years.operators)
    parser.add_argument("--seed", type=int, default=Years.seed)
    todo = Years(**vars(parser.parse_args()))
    generate(todo)
    print(f"{todo.out}: {todo.files} files, {todo.rows} rows")


if __name__ == "__main__":
    main()
