"""What ncu, nsys and torch.profiler write, read."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.profiling import ncu, nsys
from groundspeed.profiling.kernels import Launch
from groundspeed.profiling.ncu import METRICS, parse_csv
from groundspeed.profiling.trace import cpu_operators, gpu_launches, read_trace
from tests.profiling import tables


@pytest.mark.parametrize("write", [tables.ncu_csv, tables.ncu_csv_by_counter])
def test_both_of_ncus_layouts_say_the_same(write):
    first, second = parse_csv(write((tables.VEC4, tables.STREAMING), (tables.FILL, tables.SMALL)))
    assert first == Launch(
        tables.VEC4, 30112.0, (8192, 1, 1), (256, 1, 1), registers=20, shared_bytes=0, counters=tables.STREAMING
    )
    assert second.name == tables.FILL and second.counters["waves"] == 0.06


def test_units_are_ns_and_bytes_whatever_ncu_prints():
    text = tables.ncu_csv(("k", {"duration": 30.5, "dram_read": 64.0, "shared_static": 1.0, "shared_dynamic": 2.0}))
    text = text.replace('"ns"', '"usecond"').replace('"byte"', '"Mbyte"')
    (launch,) = parse_csv(text)
    assert launch.duration_ns == 30500.0 and launch.counters["dram_read"] == 64e6 and launch.shared_bytes == 3


def test_a_counter_that_ncu_could_not_read_is_left_out():
    first, second = parse_csv(tables.ncu_csv(("a", {"duration": 1.0}), ("b", {"duration": 2.0, "dram_pct": 3.0})))
    assert "dram_pct" not in first.counters and second.counters["dram_pct"] == 3.0


@given(st.dictionaries(st.sampled_from(sorted(METRICS)), st.integers(0, 10**12), min_size=1), st.booleans())
def test_every_counter_is_read_back(values, commas):
    (launch,) = parse_csv(
        tables.ncu_csv(
            (
                'k<a, b>("c")',
                {k: float(v) for k, v in values.items()},
            ),
            commas=commas,
        )
    )
    assert launch.counters == values


@given(st.text(alphabet='"ID,\nProcess\\1.2=', max_size=200))
def test_no_text_breaks_the_reader_of_ncu(text):
    parse_csv(text)
    parse_csv('"ID","Kernel Name"\n' + text)


@pytest.mark.parametrize("text", ["", "==ERROR== nothing\n", '"ID","Kernel Name"\n'])
def test_without_a_table_there_are_no_launches(text):
    assert parse_csv(text) == []


PERMISSION = (
    "==PROF== Connected to process 9 (/usr/bin/python3)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
    "permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions see a page.\n"
)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (PERMISSION, "only administrators read performance counters (ERR_NVGPUCTRPERM): run as root"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "cannot load the driver's profiling library"),
        ("==WARNING== No kernels were profiled.\n", "no kernel ran on the GPU"),
        ("==PROF== x\n==ERROR== The application returned an error code (11).\n", "ncu: The application returned an"),
        ("nothing", "ncu wrote no counters"),
    ],
)
def test_a_refusal_says_what_to_do(said, reason):
    assert reason in ncu.refusal(said)


def test_counters_that_an_ncu_does_not_know_are_named_whole():
    names = ["dram__bytes.sum", "dram__bytes.sum.per_second", "lts__x.pct"]
    said = "==ERROR== Failed to find metric dram__bytes.sum\n==PROF== metric lts__x.pct is collected\n"
    assert ncu.unknown_metrics(said, names) == ("dram__bytes.sum",)
    assert ncu.unknown_metrics(PERMISSION, names) == ()


def test_ncu_leaves_the_clocks_and_looks_between_the_marks(tmp_path):
    command = ncu.ncu_command(Path("ncu"), tmp_path / "t.csv", list(METRICS.values()), ["python", "x"])
    assert command[-2:] == ["python", "x"] and command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--profile-from-start") + 1] == "off"
    assert len(set(METRICS.values())) == len(METRICS)


@pytest.mark.parametrize("chip", ["ga100", "gh100"])
def test_an_installed_ncu_knows_every_counter_on_sm_80_and_sm_90(chip):
    """The names of hardware counters; those of the launch are the same everywhere."""
    tool = shutil.which("ncu")
    if tool is None:
        pytest.skip("needs Nsight Compute: ncu is not on the PATH")
    listed = subprocess.run([tool, "--query-metrics", "--chips", chip], capture_output=True, text=True, timeout=300)
    known = {line.split()[0] for line in listed.stdout.splitlines() if line.strip()}
    if len(known) < 100:
        pytest.skip(f"this ncu lists no counters of {chip}: {listed.stderr.strip()[:200] or listed.stdout[:200]!r}")
    # sm__maximum_warps_per_active_cycle_pct is made from the launch, as launch__* are.
    bases = {name.partition(".")[0] for name in METRICS.values() if "." in name}
    assert not bases - known


def test_nsys_gives_launches_with_registers_and_shared_memory():
    first, fill, second = nsys.parse_trace(tables.NSYS)
    assert first == Launch("void gemm<float, 4>(const float *)", 265888.0, (128, 2, 1), (256, 1, 1), 137, 34000)
    assert fill == Launch("[CUDA memset]", 1024.0) and second.duration_ns == 265000.0


def test_nsys_units_stand_in_the_header():
    text = tables.NSYS.replace("Duration (ns)", "Duration (us)").replace("StcSMem (MB)", "StcSMem (KiB)")
    assert nsys.parse_trace(text)[0].duration_ns == 265888e3
    assert nsys.parse_trace(text)[0].shared_bytes == round(0.001 * 1024 + 33000)
    assert nsys.parse_trace("SKIPPED: report.sqlite does not contain CUDA trace data.\n") == []


def kernel(name: str, ts: float, dur: float, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": args}


LAUNCH = {"registers per thread": 20, "shared memory": 512, "grid": [8, 2, 1], "block": [256, 1, 1]}


def test_torchs_trace_of_a_gpu_holds_what_cupti_knows(tmp_path):
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "ts": 1.0, "dur": 50.0},
        kernel("second", 30.5, 1.5),
        kernel("first", 20.25, 2.125, **LAUNCH),
        {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "ts": 10.0, "dur": 1.0, "args": {"bytes": 4}},
        {"ph": "M", "name": "process_name"},
    ]  # fmt: skip
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    fill, first, second = read_trace(tmp_path / "trace.json", "cuda")
    assert fill == Launch("Memset (Device)", 1000.0)
    assert first == Launch("first", 2125.0, (8, 2, 1), (256, 1, 1), 20, 512)
    assert second == Launch("second", 1500.0)
    assert gpu_launches([]) == []


def operator(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "tid": tid}


def test_an_operators_own_time_is_without_those_inside_it():
    events = [
        operator("inner", 2.0, 3.0),
        operator("outer", 0.0, 10.0),
        operator("innermost", 3.0, 1.0),
        operator("inner", 6.0, 2.0),
        operator("elsewhere", 1.0, 4.0, tid=2),
        operator("after", 10.0, 1.0),
    ]
    assert [(launch.name, launch.duration_ns) for launch in cpu_operators(events)] == [
        ("outer", 5000.0), ("inner", 2000.0), ("innermost", 1000.0), ("inner", 2000.0), ("after", 1000.0),
        ("elsewhere", 4000.0),
    ]  # fmt: skip


@given(st.recursive(st.just([]), lambda children: st.lists(children, max_size=4), max_leaves=20))
def test_own_times_add_up_to_the_whole(shape):
    """Any nesting: operators of random depth, each a unit longer than what it contains."""
    events: list[dict[str, object]] = []

    def lay(children: list, start: float) -> float:
        at = start
        for child in children:
            at = lay(child, at)
        length = at - start + 1.0
        events.append(operator("op", start, length))
        return start + length

    whole = lay(shape, 0.0)
    launches = cpu_operators(events)
    assert sum(launch.duration_ns for launch in launches) == pytest.approx(whole * 1e3)
    assert {launch.duration_ns for launch in launches} == {1000.0}
