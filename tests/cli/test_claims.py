"""`groundspeed claims`: whose records answer, and how it reads."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from groundspeed.commands import claims
from groundspeed.errors import UserError
from groundspeed.records import Environment, Footer, Header, Measurement, Record, record_path, write_record

ROOT = Path(__file__).resolve().parents[2]


IMAGES: dict[str, int | str] = {"N": 1024, "H": 512, "W": 512}


def keep(results: Path, machine: str, run_id: str, eager: float) -> None:
    rows = [
        Measurement(name, "float32", IMAGES, "ok", samples={"device_cold": [value] * 9})
        for name, value in (("torch_eager", eager), ("torch_compile", 100.0))
    ]
    keep_rows(results, machine, run_id, "normalize_color", *rows)


def keep_rows(results: Path, machine: str, run_id: str, operator: str, *rows: Measurement) -> None:
    environment = Environment("cpu" if machine.startswith("cpu") else "cuda", machine, "3.12", "Linux")
    header = Header(run_id, operator, machine, "2026-01-01", environment, tier="core")
    write_record(record_path(results, machine, run_id, operator), Record(header, rows, Footer(len(rows))))


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
        "  of         normalize_color/torch_compile float32 N=1024,* over torch_eager",
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
    assert "4 claims, 0 with a figure of ours" in said and "https://github.com/linkedin/Liger-Kernel" in said
    with pytest.raises(UserError, match="no claim holds 'xyzzy'; type: groundspeed claims"):
        ask(tmp_path, words=("xyzzy",))


def test_what_is_of_two_passes_names_both(tmp_path, capsys):
    for operator, name, times in (
        ("layer_norm", "triton_row", (300.0, 100.0)),
        ("layer_norm_backward", "triton_block", (500.0, 300.0)),
    ):
        rows = [
            Measurement(one, "float32", {"M": 16384, "N": 4096}, "ok", samples={"device_cold": [time] * 9})
            for one, time in zip(("torch_eager", name), times, strict=True)
        ]
        keep_rows(tmp_path, "nvidia-h200", "20260201T000000Z-a", operator, *rows)
    ask(tmp_path, words=("layernorm", "forwards and backwards"))
    assert capsys.readouterr().out.splitlines()[1:6] == [
        "  published  2× on A100 for 4096 tokens, 4096 wide",
        "  of         layer_norm/triton_row with layer_norm_backward/triton_block float32",
        "             M=16384,N=4096 over torch_eager",
        "  ours       2×, on another GPU, nvidia-h200: reproduced",
        "  again      groundspeed run --only layer_norm --only layer_norm_backward --tier",
    ]


def test_ours_is_shown_beside_a_source_that_tells_no_figure(tmp_path, capsys):
    shape: dict[str, int | str] = {"M": 1024, "N": 1024, "K": 1024}
    row = Measurement("torch_eager", "float32", shape, "ok", samples={"device_cold": [1e6] * 9}, flops=10**12)
    keep_rows(tmp_path, "nvidia-h200", "20260201T000000Z-a", "matmul", row)
    ask(tmp_path, words=("1024³",))
    assert capsys.readouterr().out.splitlines()[2:] == [
        "  published  no figure",
        "  of         matmul/torch_eager float32 M=1024,N=1024,K=1024",
        "  ours       1,000 TFLOP/s, on nvidia-h200: measured",
        "  again      groundspeed run --only matmul --tier core",
        "",
        "1 claims, 1 with a figure of ours: 0 exceeded, 0 reproduced, 0 not reproduced, 1",
        "without a published one, on nvidia-h200",
    ]


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
