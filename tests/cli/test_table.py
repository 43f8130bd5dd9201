"""The speedup table: order, figures, width, and that nothing that was not measured is lost."""

from __future__ import annotations

import re

import msgspec
import pytest

from groundspeed.report.remarks import count, measured, remarks
from groundspeed.report.style import PLAIN, Style, clip, width
from groundspeed.report.table import operator_table
from tests.cli.records_for_tests import bad, ok, record

NARROW = Style(colour=False, width=80)


def lines_of(*measurements, **header):
    return operator_table(record(*measurements, **header), NARROW)


def line_with(lines, name):
    return next(line for line in lines if re.search(rf"\b{name}\b", line))


def test_sorts_by_speed_and_shows_each_figure():
    lines = lines_of(ok("torch_eager", 254), ok("triton_row", 127), ok("cupy_raw", 508))
    order = [name for line in lines for name in ("torch_eager", "triton_row", "cupy_raw") if name in line]
    assert order == ["triton_row", "torch_eager", "cupy_raw"]
    # the interval of 15 samples is the third to the thirteenth; 268 MB in 127 µs are 2.11 TB/s, of 4 TB/s 53 %
    assert line_with(lines, "triton_row").split()[1:] == [
        "127", "µs", "0.30", "%", "2.00×", "2.11", "TB/s", "53", "%", "█" * 16,
    ]  # fmt: skip
    assert "1.00×" in line_with(lines, "torch_eager") and "0.500×" in line_with(lines, "cupy_raw")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(columns):
    long = "cuda_" + "_".join(["vectorised"] * 5)
    one = record(
        ok("torch_eager", 254_000), ok(long, 127_123), bad("cupy_raw", "skipped", "why " * 60), operator="o" * 20
    )
    style = Style(colour=True, width=columns)
    lines = [*operator_table(one, style), *remarks([one], style)]
    assert max(width(line) for line in lines) <= columns
    assert any("…" in line for line in lines)


def test_a_missing_baseline_leaves_the_speedup_blank():
    lines = lines_of(ok("triton_row", 127), bad("torch_eager", "failed", "boom", "error"))
    assert "–" in line_with(lines, "triton_row")


def test_an_unstable_measurement_is_marked_and_explained():
    one = record(ok("torch_eager", 254), ok("triton_row", 127, unstable="interval ±2 % after 60 rounds"))
    assert line_with(operator_table(one, NARROW), "triton_row").lstrip().startswith("≈")
    text = "\n".join(remarks([one], NARROW))
    assert "≈ Unstable" in text and "interval ±2 % after 60 rounds" in text and "triton_row" in text


def test_compute_bound_operators_show_operations():
    lines = lines_of(ok("torch_eager", 1000, flops=int(5e11)), bound="compute", operator="matmul")
    assert "500 TFLOP/s" in line_with(lines, "torch_eager")
    assert any("500 GFLOP" in line for line in lines)


def test_without_ceilings_there_is_no_such_column():
    lines = lines_of(ok("torch_eager", 254), ceilings=None)
    assert "ceiling" not in "".join(lines)


def test_the_mean_over_cases_counts_what_both_ran():
    lines = lines_of(
        ok("torch_eager", 200), ok("triton_row", 100), ok("cupy_raw", 100),
        ok("torch_eager", 200, M=4096), ok("triton_row", 25, M=4096), bad("cupy_raw", "skipped", "no", M=4096),
    )  # fmt: skip
    mean = lines[next(i for i, line in enumerate(lines) if "all cases" in line) :]
    assert "4.00×" in line_with(mean, "triton_row")
    assert "over 1 of 2 cases" in line_with(mean, "cupy_raw")


def test_nothing_measured_says_so():
    assert any("nothing was timed" in line for line in lines_of(bad("torch_eager", "skipped", "no memory")))


def test_remarks_gather_by_reason_and_name_whole_back_ends():
    one = record(
        ok("torch_eager", 254),
        bad("cuda_a", "skipped", "needs a GPU"),
        bad("cuda_b", "skipped", "needs a GPU"),
        bad("triton_row", "failed", "wrong at 3", "incorrect"),
        bad("cupy_raw", "failed", "nvcc said\x1b[2J no", "build"),
    )
    lines = remarks([one], NARROW)
    text = "\n".join(lines)
    assert text.index("Failed") < text.index("Skipped")
    assert "incorrect: wrong at 3" in text
    assert "cuda_* (2)" in text and text.count("needs a GPU") == 1
    assert "\x1b" not in text
    assert count(measured([one]), "failed") == 2


def test_remarks_note_another_timer_and_work_on_another_stream_and_not_how_energy_was_had():
    because = "timed by events because CUPTI cannot be used: it recorded 0 of 3 kernels"
    notes = [because, "energy over 1.01 s of calls back to back: 119 W, 96,446 calls/s, device busy 19 %"]
    astray = "work on another stream lies up to {} µs outside its call; it is timed with it"
    one = record(
        ok("torch_eager", 254, notes=notes),
        ok("triton_row", 127, notes=[because, astray.format(12)]),
        ok("cuda_a", 127, notes=[astray.format(300)]),
        bad("cupy_raw", "skipped", "no"),
    )
    text = " ".join("\n".join(remarks([one], NARROW)).split())
    assert text.count(because) == 1 and "energy" not in text
    assert text.count("for example: work on another stream") == 1 and "triton_row, cuda_a" in text
    assert text.index("Noted") < text.index("Skipped")


def test_remarks_say_once_what_holds_for_a_back_end_of_every_operator():
    def one(operator, *more):
        return record(ok("torch_eager", 254), bad("cuda_a", "skipped", "needs a GPU"), *more, operator=operator)

    records = [one("relu", bad("cuda_b", "skipped", "needs a GPU")), one("gelu"), one("silu")]
    text = "\n".join(remarks(records, NARROW))
    assert "all operators    cuda_* (4)" in text and "relu" not in text
    partly = [*records, record(ok("torch_eager", 1), ok("cuda_a", 1), operator="softmax")]
    text = "\n".join(remarks(partly, NARROW))
    assert "all operators" not in text and "relu             cuda_* (2)" in text
    assert "all operators" not in "\n".join(remarks(records[:2], NARROW))


def test_remarks_name_the_cases_where_not_all_are_meant():
    one = record(ok("torch_eager", 254), ok("cupy_raw", 3), bad("cupy_raw", "skipped", "no bfloat16", dtype="bfloat16"))
    assert "cupy_raw (bfloat16 M=8192,N=8192)" in "\n".join(remarks([one], NARROW))


def test_an_implementation_less_accurate_than_the_baseline_is_named():
    from groundspeed.records import Accuracy

    loose = Accuracy(max_abs=1e-2, max_rel=1e-2, norm=1e-3, tolerance_used=0.9)
    text = "\n".join(remarks([record(ok("torch_eager", 254), ok("cuda_fastmath", 100, accuracy=loose))], NARROW))
    assert "Less accurate" in text and "cuda_fastmath 10.0×" in text


def test_plain_output_has_no_escape_and_colour_changes_no_letter():
    one = record(ok("torch_eager", 254), ok("triton_row", 127))
    plain, coloured = operator_table(one, NARROW), operator_table(one, Style(colour=True, width=80))
    assert "\x1b" not in "".join(plain) and "\x1b[" in "".join(coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured] == plain


def test_clip_counts_columns_not_characters():
    assert clip("abcdef", 4) == "abc…"
    assert width(clip("漢字漢字", 5)) <= 5


class _Stream:
    def __init__(self, terminal):
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_is_for_terminals(terminal, environment, coloured):
    assert Style.of(_Stream(terminal), environment).colour is coloured
    assert not PLAIN.colour


def test_a_run_that_timed_something_else_says_what_to_ask_for():
    called = msgspec.structs.replace(ok("torch_eager", 254), samples={"call": [1.0, 2.0]})
    (line,) = (line for line in lines_of(called) if "nothing" in line)
    assert line == "  nothing of device_cold, but of call: type --quantity call"
