"""groundspeed shares, on a CPU and in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from groundspeed.analysis.shares import Operation
from groundspeed.records import Ceilings
from groundspeed.report.shares import share_tables
from groundspeed.report.style import Style
from tests.architecture.sources import ROOT


def shares(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "groundspeed", "shares", *words],
        cwd=ROOT,
        env={**os.environ, "GROUNDSPEED_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_tables_show_the_published_shares_beside_ours() -> None:
    operations = [
        Operation("attention", "bmm", 500.0, 900_000, 100, 100),
        Operation("FFN", "add", 250.0, 0, 100, 50),
        Operation("norms", "native_layer_norm", 250.0, 0, 100, 100),
    ]
    ceilings = Ceilings(copy=1e9, read=1e9, write=1e9, matmul={"float16": 2e12})
    text = "\n".join(share_tables("float16", "B=1,S=2", 2000.0, operations, ceilings, Style()))
    assert "float16 B=1,S=2" in text and "of a call of 2.00 µs" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "50 %" in rows["attention"] and "30–40 %" in rows["attention"]
    assert "25 %" in rows["memory"] and "65 %" in rows["memory"]
    assert "50 %" in rows["launch"] and "20 %" in rows["compute"]
    assert "compute" in rows["bmm"] and "90 % of ceiling" in rows["bmm"]
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_command_measures_on_a_cpu_and_says_so() -> None:
    done = shares("bfloat16", "B=1,S=1,*", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (taken,) = told["taken"]
    assert taken["shape"].startswith("B=1,S=1,") and {"attention", "FFN", "norms"} < {
        one["part"] for one in taken["operations"]
    }
    assert "a CPU: time of each operation" in shares("bfloat16", "B=1,S=1,*").stdout


def test_a_case_that_is_not_there_is_one_line() -> None:
    done = shares("B=9999")
    assert done.returncode == 2
    assert done.stderr.startswith("groundspeed: transformer_layer: no case") and done.stderr.count("\n") == 1
