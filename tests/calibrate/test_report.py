"""A calibration as text, for a terminal and for the page."""

from __future__ import annotations

import pytest

from groundspeed.calibrate.report import BEGIN, END, markdown, replace_calibration, terminal
from groundspeed.errors import UserError
from groundspeed.report.style import width
from tests.calibrate.make import calibration, readings
from tests.cli.toy_project import ROOT, groundspeed


@pytest.fixture
def whole():
    return calibration(
        *readings("cupti_memset", processes=4),
        *readings("nvbench", processes=4),
        *readings("ncu", scatter=0.0, processes=1),
    )


def cells(text: str, first: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_a_probe_with_value_scatter_and_floor(whole):
    text = markdown(whole, "nvidia-h200")
    assert cells(text, "probe")[:4] == ["probe", "cold", "CV", "within"]
    # a scatter of ±0.1 % over 12 processes: a standard deviation of 0.104 %
    assert cells(text, "relu_64KiB") == [
        "relu_64KiB", "1.42 µs", "0.10 %", "0.40 %", "1.28 µs", "0.10 %", "0.10 %",
    ]  # fmt: skip


def test_other_methods_stand_beside_ours_with_their_own_scatter(whole):
    text = markdown(whole, "nvidia-h200").partition("Beside other ways")[2]
    assert cells(text, "probe") == ["probe", "groundspeed", "memset flush", "NVBench", "Nsight Compute"]
    assert cells(text, "relu_64MiB")[1:] == [
        "30.0 µs ± 0.10 %", "33.0 µs ± 0.12 %", "36.0 µs ± 0.12 %", "30.9 µs",
    ]  # fmt: skip
    assert cells(text, "NVBench")[-3:] == ["0.12 %", "4", "0.20"]
    assert "do_bench: no figures: not installed" in text
    assert "our spans read +10.0 %" in text and "NVBench reads +20.0 %" in text


def test_what_must_hold_is_said_line_by_line(whole):
    text = markdown(whole, "nvidia-h200")
    assert "* between-process CV at most 0.70 % for 90 % of the probes over 3 µs: holds: 2 of 2 (100 %)" in text
    assert "* within 6.0 % of Nsight Compute for probes of 20 µs and more: holds: -2.9 % to -2.9 %" in text
    bad = markdown(calibration(readings=readings("cupti", scatter=0.02)), "nvidia-h200")
    assert "does not hold: 0 of 2 (0.00 %)" in bad and "* beyond it: relu_64MiB: 2.1 %" in bad


def test_the_caption_says_on_what_how_and_for_how_long(whole):
    text = markdown(calibration(phases={"start": 61.0, "probes": 20.0}), "nvidia-h200").splitlines()[0]
    assert text == (
        "NVIDIA Test, driver 580.1, torch 2.11.0; 2026-01-01, commit `01234567`. 12 processes one after another, "
        "30 rounds of two equal sides in each; other ways of timing in 4 of them; all of it took 3 min 20 s. "
        "Of the processes: starting (the next while one loads) 1 min 01 s, our own 20 s."
    )


def test_costs_and_ceilings_have_their_rows(whole):
    text = markdown(whole, "nvidia-h200")
    assert cells(text, "host time to launch an empty kernel") == [
        "host time to launch an empty kernel", "2.00 µs", "0.00 %",
    ]  # fmt: skip
    assert cells(text, "ceiling: copy of device memory")[1] == "4.30 TB/s"
    assert cells(text, "ceiling: matmul 8192³, bfloat16")[1] == "780 TFLOP/s"
    # 2 bytes at 4.3 TB/s and one at 4.4: 4.333 TB/s, 3.2 % over what was measured
    assert cells(text, "2 read to 1 written; the model of ceilings: +3.2%")[1] == "4.20 TB/s"


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_the_terminal_shows_the_same_in_its_own_width(whole, columns):
    text = terminal(whole, columns)
    assert max(map(width, text.splitlines())) <= columns
    assert "1.42 µs" in text and "33.0 µs ± 0.12 %" in text and "|" not in text
    assert text.count("relu_64MiB") >= 2


def test_without_a_calibration_no_figure_is_shown():
    assert markdown(None, "nvidia-h200") == (
        "There is no calibration of `nvidia-h200` yet: type `groundspeed calibrate` there."
    )


def test_the_page_keeps_all_but_what_stands_between_its_marks():
    page = f"before\n{BEGIN}\nstale\n{END}\nafter\n"
    assert replace_calibration(page, "new", "x.md") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    for broken in ("", BEGIN, f"{END}\n{BEGIN}", page + page):
        with pytest.raises(UserError, match=r"x\.md: expected the two lines"):
            replace_calibration(broken, "new", "x.md")


def test_the_page_of_this_repository_is_not_stale():
    done = groundspeed("calibrate", "--markdown", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr
