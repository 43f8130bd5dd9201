"""`groundspeed claims`: whose records answer, and how it reads."""

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


def ask(results: Path, machine: str | None = None, words: tuple[str, ...] = ()) -> int:
    return claims.run(argparse.Namespace(project=ROOT, results=results, machine=machine, words=list(words)))


def test_the_gpu_measured_last_answers_though_this_machine_measured_later(tmp_path, capsys):
    keep(tmp_path, "nvidia-a100", "20260101T000000Z-a", 300.0)
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    keep(tmp_path, "cpu-x", "20260301T000000Z-a", 900.0)
    assert ask(tmp_path) == 0
    said = capsys.readouterr().out
    assert "ours       2×, on another GPU, nvidia-h200: exceeded" in said and "nvidia-h200" in said.splitlines()[-1]
    assert ask(tmp_path, "cpu-x") == 0
    assert "cpu-x" in capsys.readouterr().out.splitlines()[-1]


def test_a_claim_is_told_with_all_that_belongs_to_it(tmp_path, capsys):
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    ask(tmp_path, words=("torch.compile", "30 %"))
    assert capsys.readouterr().out.splitlines() == [
        "001, normalise and colour transform: torch.compile gains 15 to 30 % over the",
        "two-step eager form",
        "  published  1.15× to 1.3× on V100 for [1024, 512, 512, 3] float32",
        "  of         normalize_color/torch_compile float32 over torch_eager",
        "  ours       2×, on another GPU, nvidia-h200: exceeded",
        "  again      groundspeed run --only normalize_color --tier core",
        "",
        "1 claims, 1 with a figure of ours: 1 exceeded, 0 reproduced, 0 not reproduced,",
        "on nvidia-h200",
    ]


def test_words_narrow_it_and_none_is_said(tmp_path, capsys):
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    ask(tmp_path, words=("LIGER", "memory"))
    said = capsys.readouterr().out
    assert "3 claims, 0 with a figure of ours" in said and "https://github.com/linkedin/Liger-Kernel" in said
    with pytest.raises(UserError, match="no claim holds 'xyzzy'; type: groundspeed claims"):
        ask(tmp_path, words=("xyzzy",))


def test_a_claim_without_an_answer_says_why(tmp_path, capsys):
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    ask(tmp_path, words=("ascend",))
    assert "  ours       none: another kind of processor" in capsys.readouterr().out


def test_lines_fit_80_columns(tmp_path, capsys):
    keep(tmp_path, "nvidia-h200", "20260201T000000Z-a", 200.0)
    ask(tmp_path)
    assert max(len(line) for line in capsys.readouterr().out.splitlines() if "https://" not in line) <= 80


def test_without_records_it_says_what_to_type(tmp_path):
    with pytest.raises(UserError, match="groundspeed run"):
        ask(tmp_path)
