"""groundspeed shares, on a CPU and in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

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


def test_where_launch_cannot_be_seen_no_share_is_one_of_the_call() -> None:
    operations = [Operation("FFN", "bmm", 500_000.0, 900_000, 100, 100), Operation("FFN", "add", 246_000.0, 0, 9, 9)]
    ceilings = Ceilings(copy=1e9, read=1e9, write=1e9, matmul={"float32": 2e12})
    text = "\n".join(share_tables("float32", "B=1", 446_000.0, operations, ceilings, Style()))
    assert "of operations summing to 746 µs" in text and "of a call of" not in text
    (launch,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["launch"]]
    assert launch[1:3] == ["–", "–"]
    assert "a call takes 446 µs, less than its operations apart: launch cannot be seen" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_ended_by_sigterm_it_leaves_neither_folder_nor_process(tmp_path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "groundspeed", "shares", "bfloat16"],
        cwd=ROOT,
        env={**os.environ, "GROUNDSPEED_DEVICE": "cpu", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("groundspeed-shares-*/ask.json")) and time.monotonic() < end:
            time.sleep(0.02)
        (folder,) = tmp_path.glob("groundspeed-shares-*")
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "interrupted" in said and "Traceback" not in said
    assert not folder.exists()
    processes = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    assert not any(str(folder).encode() in command for command in processes)


def _readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def test_the_command_measures_on_a_cpu_and_says_so() -> None:
    done = shares("bfloat16", "B=1,S=1,*", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [line for line in done.stderr.splitlines() if line.startswith("1/1 bfloat16 B=")]
    assert done.stderr
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
