"""A scratch repository with one small operator, and an engine that measures by reading the implementations' files.

The engine takes what a side costs from constants in its source, so that a test plants a slowdown as a user would: by
editing a file and committing it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from groundspeed.gate import gate_command
from groundspeed.gate.paired import MeasureLost, PairOutcome, PairSamples
from groundspeed.records import Accuracy, Environment, Measurement

SPEC = '''"""Doubles."""
from groundspeed.operator import Operator, Tolerance, Traffic, case

def inputs(generator, dtype, device, N):
    return {}

def reference(x):
    return 2 * x

SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(N * itemsize, N * itemsize),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-5, 1e-6)},
    check_shapes=({"N": 1},),
    bench_shapes=({"N": 64}, {"N": 4096}),
    tiers={"small": (case("float32", N=64),), "core": (case("float32", N=64),)},
)
'''
EAGER = '"""Eager."""\nCOST = 1000\n'
ROW = '"""A row."""\nfrom .. import _shared\nCOST = 500\n'


def environment(**more):
    return Environment(**{"device": "cpu", "device_name": "Fake", "python": "3.12", "os": "linux", "torch": "2"} | more)


@dataclass
class FakeEngine:
    """Reads COST (ns), JITTER, CALLS, PEAK, ERROR, TUNED, SLOW_SHARE, FAIL, SKIP from each side's file."""

    requests: list = field(default_factory=list)
    lose_after: int | None = None  # processes until the device is gone
    mix_at: int | None = None  # process that reports another GPU
    drop: tuple[str, ...] = ()  # pairs that no outcome is returned for
    phases: dict = field(default_factory=dict)  # what every process says it spent
    noise: float = 0.001

    def __call__(self, request):
        self.requests.append(request)
        for number in range(request.processes):
            if self.lose_after is not None and number >= self.lose_after:
                raise MeasureLost("the GPU has fallen off the bus")
            process = request.first_process + number
            random = np.random.default_rng([request.seed, process])
            where = environment(uuid_hash="other" if process == self.mix_at else "one")
            outcomes = tuple(
                PairOutcome(
                    pair.name, case, *(self._side(side, case, request, random) for side in (pair.base, pair.head))
                )
                for pair in request.pairs
                if pair.name not in self.drop
                for case in pair.cases
            )
            yield PairSamples(request.operator, process, "cpu-fake", where, outcomes, self.phases)

    def _side(self, side, case, request, random):
        folder = side.tree / request.operator
        source = (folder / f"{side.implementation}.py").read_text()
        shared = folder.parent / "_shared.py"
        if "_shared" in source and shared.is_file():
            source = shared.read_text() + source
        known = dict(re.findall(r"^([A-Z_]+) = (.+)$", source, re.MULTILINE))
        given = {"implementation": side.implementation, "dtype": case.dtype, "shape": case.dims}
        if "FAIL" in known:
            kind, reason = json.loads(known["FAIL"])
            return Measurement(**given, status="failed", failure=kind, reason=reason)
        if "SKIP" in known:
            return Measurement(**given, status="skipped", reason=json.loads(known["SKIP"]))
        cost = float(known["COST"]) * float(known.get("SCALE", 1))
        if "JITTER" in known:  # the sd of a process effect's logarithm
            cost *= np.exp(float(known["JITTER"]) * random.standard_normal())
        samples = cost * (1 + self.noise * random.standard_normal((len(request.quantities), request.rounds)))
        slow = random.random(samples.shape) < float(known.get("SLOW_SHARE", 0))
        samples = np.where(slow, samples * 3, samples)
        taken = {name: list(row) for name, row in zip(request.quantities, samples, strict=True)}
        if "CALLS" in known:
            del taken["call"][int(known["CALLS"]) :]
        error = float(known.get("ERROR", 1e-6))
        return Measurement(
            **given,
            status="ok",
            samples=taken,
            prepare_ns=1e6,
            first_run_ns=1e6,
            peak_memory_bytes=int(known.get("PEAK", 10**6)),
            accuracy=Accuracy(max_abs=error, max_rel=error, norm=error, tolerance_used=0.1),
            tuned=json.loads(known.get("TUNED", '""')),
        )


@dataclass
class Result:
    status: int
    report: dict
    output: str
    errors: str = ""

    def findings(self, **wanted):
        return [f for f in self.report["findings"] if all(f[key] == value for key, value in wanted.items())]

    def verdicts(self, **wanted):
        return {f["verdict"] for f in self.findings(**wanted)}


class Repo:
    """A git repository in a temporary folder, with what a test does to it."""

    def __init__(self, root: Path, capsys):
        self.root, self.capsys = root, capsys
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Tester")
        self.git("config", "user.email", "tester@example.org")

    def git(self, *arguments):
        done = subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def edit(self, path, old, new):
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def commit(self, message="Change", *paths):
        self.git("add", "-A", *paths)
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def gate(self, *typed, engine=None, device="cpu"):
        """Run the command; raises UserError as it does."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--project", type=Path, default=self.root)
        gate_command.add_arguments(parser)
        out = self.root.parent / "report.json"
        out.unlink(missing_ok=True)
        arguments = parser.parse_args([*typed, "--json", str(out), "--device", device, "--tier", "full"])
        engine = engine or FakeEngine()
        status = gate_command.run_with(arguments, lambda: engine)
        report = json.loads(out.read_text()) if out.is_file() else {}
        printed = self.capsys.readouterr()
        return Result(status, report, printed.out, printed.err)


@pytest.fixture
def repo(tmp_path, capsys):
    (tmp_path / "repo").mkdir()
    repo = Repo(tmp_path / "repo", capsys)
    repo.write("asv.conf.json", "{}")
    repo.write("impls/_shared.py", "SCALE = 1\n")
    repo.write("impls/double/spec.py", SPEC)
    repo.write("impls/double/torch_eager.py", EAGER)
    repo.write("impls/double/triton_row.py", ROW)
    repo.commit("Start")
    repo.git("checkout", "-q", "-b", "topic")
    return repo


@pytest.fixture
def fake_engine():
    return FakeEngine


@pytest.fixture
def real_engine():
    """What measures on this machine; its nursery ends with the test."""
    with gate_command.one_engine(gate_command.engine) as found:
        yield found()
