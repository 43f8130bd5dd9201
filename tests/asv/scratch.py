"""A scratch project under git, with asv's own command run in it as a user would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundspeed.records import Record, find_records, read_record

ROOT = Path(__file__).resolve().parents[2]

SPEC = '''"""{operator}: a stand-in."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {{"x": data(torch.randn(N, generator=generator, device=device).to(dtype))}}


def reference(x):
    return x.clamp(min=0)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(N * itemsize, N * itemsize),
    dtypes=("float32", "float16"),
    tolerance={{"float32": Tolerance(0, 0), "float16": Tolerance(0, 0)}},
    check_shapes=({{"N": 1}}, {{"N": 7}}),
    bench_shapes=({{"N": 1024}}, {{"N": 4096}}),
    tiers={{"small": (case("float32", N=1024),), "core": (case("float32", N=1024), case("float16", N=4096))}},
)
'''

IMPLEMENTATION = '''"""{idea}."""

# claims: {claim}
{imports}

def prepare(x):
    def run():
        return {expression}

    return run
'''


@dataclass(frozen=True)
class Scratch:
    """A project in ``root``; ``home`` keeps asv's own files away from the user's."""

    root: Path
    home: Path

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def implementation(
        self, operator: str, name: str, claim: object = 1000, expression: str = "x.clamp(min=0)"
    ) -> None:
        imports = "\nimport torch\n" if "torch." in expression else ""
        text = IMPLEMENTATION.format(idea=f"{name} of {operator}", claim=claim, expression=expression, imports=imports)
        self.write(f"impls/{operator}/{name}.py", text)

    def operator(self, name: str) -> None:
        self.write(f"impls/{name}/spec.py", SPEC.format(operator=name))

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=self.environment(), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def asv(self, *arguments: str, expect: int | None = 0, **variables: str) -> str:
        """asv's output; ``expect`` is the exit status that must come (None: any)."""
        done = subprocess.run(
            [sys.executable, "-m", "asv", *arguments],
            cwd=self.root,
            env={**self.environment(), **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )
        output = done.stdout + done.stderr
        assert expect is None or done.returncode == expect, f"asv {arguments} exited {done.returncode}:\n{output}"
        return output

    def result_files(self) -> list[Path]:
        return sorted(p for p in self.root.glob("results/*/*.json") if p.name != "machine.json")

    def records(self) -> list[Record]:
        return [read_record(path) for path in find_records(self.root / "results")]

    def sweeps(self) -> list[str]:
        log = self.root / "sweeps.log"
        return log.read_text().splitlines() if log.exists() else []

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GROUNDSPEED_", "ASV", "GIT_"))}
        return {
            **kept,
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Author",
            "GIT_AUTHOR_EMAIL": "author@example.org",
            "GIT_COMMITTER_NAME": "Author",
            "GIT_COMMITTER_EMAIL": "author@example.org",
        }


def make_scratch(folder: Path, operators: tuple[str, ...]) -> Scratch:
    """A project with today's harness and benchmarks and the named stand-in operators, each with a baseline."""
    scratch = Scratch(folder / "project", folder / "home")
    scratch.home.mkdir(parents=True)
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("groundspeed", "benchmarks"):
        shutil.copytree(ROOT / name, scratch.root / name, ignore=ignore)
    for name in ("asv.conf.json", ".gitignore"):
        shutil.copy(ROOT / name, scratch.root / name)
    for operator in operators:
        scratch.operator(operator)
        scratch.implementation(operator, "torch_eager")
    scratch.git("init", "-q", "-b", "main")
    return scratch


@dataclass(frozen=True)
class ResultFile:
    """One of asv's result files, by names instead of positions."""

    raw: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> ResultFile:
        return cls(json.loads(path.read_text()))  # Python reads asv's literal NaN

    def column(self, benchmark: str, column: str) -> dict[tuple[str, ...], Any]:
        """Parameter values (unquoted) → the entry of a result column."""
        entry = dict(zip(self.raw["result_columns"], self.raw["results"][benchmark], strict=False))
        combinations = [()]
        for values in entry["params"]:
            combinations = [(*head, re.sub(r"^'|'$", "", value)) for head in combinations for value in values]
        values = entry[column] or [None] * len(combinations)
        return dict(zip(combinations, values, strict=True))
