"""`groundspeed claims`: whose records answer."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from groundspeed.commands import claims
from groundspeed.errors import UserError
from groundspeed.records import Environment, Footer, Header, Measurement, Record, record_path, write_record

ROOT = Path(__file__).resolve().parents[2]


def keep(results: Path, machine: str, run_id: str, eager: float) -> None:
    shape: dict[str, int | str] = {"N": 16, "H": 512, "W": 512}
    rows = tuple(
        Measurement(name, "float32", shape, "ok", samples={"device_cold": [value] * 9})
        for name, value in (("torch_eager", eager), ("torch_compile", 100.0))
    )
    environment = Environment("cpu" if machine.startswith("cpu") else "cuda", machine, "3.12", "Linux")
    header = Header(run_id, "normalize_color", machine, "2026-01-01", environment, tier="core")
    write_record(record_path(results, machine, run_id, "normalize_color"), Record(header, rows, Footer(2)))


def ask(results: Path, machine: str | None = None) -> int:
    return claims.run(argparse.Namespace(project=ROOT, results=results, machine=machine))


def test_the_gpu_measured_last_answers_though_this_machine_measured_later(tmp_path, capsys):
    keep(tmp_path, "nvidia-a100", "20260101T000000Z-a", 300.0)
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    keep(tmp_path, "cpu-x", "20260301T000000Z-a", 900.0)
    assert ask(tmp_path) == 0
    said = capsys.readouterr().out
    assert "2× over 1 cases" in said and "measured on nvidia-h200" in said
    assert ask(tmp_path, "cpu-x") == 0
    assert "measured on cpu-x" in capsys.readouterr().out


def test_lines_fit_80_columns(tmp_path, capsys):
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    ask(tmp_path)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_without_records_it_says_what_to_type(tmp_path):
    with pytest.raises(UserError, match="groundspeed run"):
        ask(tmp_path)
