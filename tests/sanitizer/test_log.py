"""compute-sanitizer's logs, read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.sanitizer.log import Log, Report, distinct, parse_log
from tests.sanitizer import logs


def test_a_write_out_of_bounds_has_its_kernel_and_line_and_is_one_report_for_all_threads():
    found = parse_log(logs.MEMCHECK)
    report = Report(
        "Invalid __global__ write of size 4 bytes",
        "void <unnamed>::past_end<float>(const T1 *, T1 *, long)",
        "cuda_past_end.cu:21",
    )
    assert found == Log((report, report), 39, 0, True) and not found.clean
    assert distinct(found.reports) == (report,)


def test_older_releases_put_the_offset_first():
    shared, misaligned = parse_log(logs.OLD_MEMCHECK).reports
    assert shared == Report(
        "Invalid __shared__ read of size 4 bytes", "MatMulKernel(Matrix, Matrix, Matrix)", "task1.cu:120"
    )
    assert misaligned == Report("Invalid __global__ read of size 16 bytes", "kernel(float *, float *)", "")


def test_a_race_names_both_sides_and_its_severity():
    found = parse_log(logs.RACECHECK)
    assert (found.errors, found.warnings, found.complete) == (1, 1, True)
    assert found.reports == (
        Report(
            "Race between write and read in shared memory",
            "sumKernel(int *, int *)",
            "block_error.cu:41, block_error.cu:51",
        ),
        Report("Race between read and write in shared memory", "ka(int *)", "", "warning"),
    )


def test_lines_that_lost_their_indentation_still_belong_together():
    (report,) = parse_log(logs.INITCHECK).reports
    assert report == Report(
        "Uninitialized __global__ memory read of size 4 bytes", "vectorAdd(int *)", "memset_error.cu:41"
    )


def test_an_error_in_a_called_function_is_the_kernels():
    (report,) = parse_log(logs.SYNCCHECK).reports
    assert report.kernel == "myKernel(int *, int *)" and report.place == "test.cu:42"
    assert report.kind == "Barrier error detected. Divergent thread(s) in block"


@pytest.mark.parametrize("text", [logs.CLEAN, logs.CLEAN_RACECHECK])
def test_clean_is_what_has_a_summary_of_nothing(text: str):
    assert parse_log(text).clean


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (logs.NOT_SUPPORTED, "Error: Device not supported"),
        (logs.NOT_TRACKED, "Internal Sanitizer Error"),
        (logs.NEVER_STARTED, "Error: Target application terminated before first instrumented API call"),
    ],
)
def test_a_tool_that_did_not_watch_is_never_clean(text: str, problem: str):
    found = parse_log(text)
    assert found.problem.startswith(problem) and not found.clean
    assert found.reports == ()


def test_a_program_that_crashed_is_no_fault_of_the_tool():
    assert parse_log(logs.CRASHED) == Log((), 0, 0, True)


@pytest.mark.parametrize("text", ["", "Traceback\n", "========= COMPUTE-SANITIZER\n"])
def test_a_log_without_a_summary_is_not_clean(text: str):
    assert not parse_log(text).complete and not parse_log(text).clean


def test_a_report_counts_when_the_summary_forgets_it():
    text = logs.MEMCHECK.replace("39 errors", "0 errors")
    assert parse_log(text).errors == 2 and not parse_log(text).clean


WORD = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
KIND = st.sampled_from(
    ["Invalid __global__ read of size 16 bytes", "Uninitialized __shared__ memory read of size 2 bytes"]
)
FUNCTION = st.builds(
    lambda name, template: f"{name}{template}(const float *, long)", WORD, st.sampled_from(["", "<int>"])
)
PLACE = st.builds(lambda name, line: f"{name}.cu:{line}", WORD, st.integers(1, 9999))
NOISE = st.lists(st.from_regex(r"[ A-Za-z0-9:=]{0,8}", fullmatch=True), max_size=3)


@given(st.lists(st.tuples(KIND, FUNCTION, PLACE, NOISE, st.booleans()), max_size=6))
def test_whatever_is_reported_is_read_back(found):
    lines = ["========= COMPUTE-SANITIZER"]
    for kind, function, place, noise, old in found:
        at = f"0x{7:x}0 in /a b/{place}:{function}" if old else f"{function}+0x70 in {place}"
        lines += [f"========= {kind}", f"=========     at {at}", "=========     by thread (1,0,0) in block (0,2,0)"]
        lines += ["=========", *(line for line in noise if not line.startswith("========="))]
    lines.append(f"========= ERROR SUMMARY: {len(found)} error{'' if len(found) == 1 else 's'}")
    read = parse_log("\n".join(lines) + "\n")
    assert read == Log(
        tuple(Report(kind, function, place) for kind, function, place, _, _ in found), len(found), 0, True
    )


@given(st.text(alphabet="= \nEInva()<>:0x+123cu.abt", max_size=300))
def test_no_text_breaks_the_reader(text: str):
    assert parse_log(text).clean in (True, False)
