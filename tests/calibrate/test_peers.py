"""Other projects' answers are read as they print them. No figure here was measured."""

from __future__ import annotations

import subprocess

import pytest

from groundspeed.calibrate import ncu, nvbench, peers
from groundspeed.calibrate.run import absent_peers
from groundspeed.calibrate.schema import Missing, Reading

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)


def line(number: int, kernel: str, value: str, unit: str = "ns") -> str:
    before = f'"{number}","12","python3.12","127.0.0.1","{kernel}","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0"'
    return f'{before},"Command line profiler metrics","{ncu.METRIC}","{unit}","{value}"'


def printed(repeats: int = ncu.REPEATS) -> str:
    """Two probes, the second of two kernels; other output before the table."""
    lines = ["==PROF== Connected to process 12", "==PROF== Disconnected", HEAD]
    for number in range(repeats):
        lines += [
            line(0, "groundspeed_mark", "1,024"),
            line(1, "void at::native::relu<float>(int, float)", f"1,{400 + number}"),
            line(2, "groundspeed_mark", "1,024"),
            line(3, "void at::native::reduce(float)", "30.5", "usecond"),
            line(4, "void at::native::finish(float)", "0.5", "us"),
        ]
    return "\n".join(lines) + "\n"


def test_ncus_table_gives_each_call_of_each_probe():
    first, second = ncu.durations(printed(), 2)
    assert first == [1400.0, 1401.0, 1402.0] and second == [31_000.0] * 3


def test_ncus_raw_page_says_the_same():
    head = f'"ID","Kernel Name","{ncu.METRIC}"'
    rows = ['"","","us"', *[f'"{n}","{name}","{value}"' for n, (name, value) in enumerate(
        [("groundspeed_mark", "1.0"), ("relu", "2.5")] * ncu.REPEATS)]]  # fmt: skip
    assert ncu.durations("\n".join([head, *rows]), 1) == [[2_500.0] * ncu.REPEATS]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("==PROF== nothing\n", "no table"),
        (printed(repeats=2), "ncu shows 4 calls, 6 were made"),
        (printed().replace("1,400", "nan"), "'nan' for a duration"),
        (printed().replace('"usecond"', '"fortnight"'), "'fortnight' for a duration"),
    ],
)
def test_other_than_that_is_no_figure(text, said):
    with pytest.raises(ncu.NoFigures, match=said):
        ncu.durations(text, 2)


def run_as(monkeypatch, stdout: str = "", stderr: str = "", status: int = 0):
    asked = []

    def run(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, status, stdout, stderr)

    monkeypatch.setattr(ncu, "find_ncu", lambda: "/opt/ncu")
    monkeypatch.setattr(ncu.subprocess, "run", run)
    return asked


def test_ncu_is_run_once_with_its_clocks_left_alone(monkeypatch):
    asked = run_as(monkeypatch, printed())
    found = list(ncu.measure(["relu_64KiB", "row_sum_4MiB"], {}))
    assert [(one.probe, one.value_ns, one.count, one.process) for one in found] == [
        ("relu_64KiB", 1401.0, 3, 0), ("row_sum_4MiB", 31_000.0, 3, 0),
    ]  # fmt: skip
    (command,) = asked
    assert command[0] == "/opt/ncu" and command[-2:] == ["relu_64KiB", "row_sum_4MiB"]
    assert command[command.index("--clock-control") + 1] == "none"


def test_why_ncu_gives_no_figures(monkeypatch):
    run_as(monkeypatch, stdout="==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", status=1)
    (one,) = ncu.measure(["relu_64KiB"], {})
    assert isinstance(one, Missing) and one.reason.startswith("not permitted: ERR_NVGPUCTRPERM")
    run_as(monkeypatch, stderr="==ERROR== Failed to connect\n", status=1)
    assert [one.reason for one in ncu.measure(["relu_64KiB"], {})] == ["Failed to connect"]
    run_as(monkeypatch, status=3)
    assert [one.reason for one in ncu.measure(["relu_64KiB"], {})] == ["ncu printed no table (status 3)"]

    def hangs(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(ncu.subprocess, "run", hangs)
    assert [one.reason for one in ncu.measure(["relu_64KiB"], {})] == ["took more than 120 s"]
    monkeypatch.setattr(ncu, "find_ncu", lambda: None)
    assert "not installed" in next(iter(ncu.measure(["relu_64KiB"], {}))).reason


def summary(tag: str, value: str | None, kind: str = "float64") -> dict:
    return {"tag": tag, "name": "x", "data": [{"name": "value", "type": kind, "value": value}]}


def state(*summaries: dict, **more) -> dict:
    return {"name": "state", "summaries": list(summaries), **more}


def test_nvbenchs_median_and_scatter_are_read_by_their_tags():
    benchmarks = [
        {
            "name": "relu_64KiB",
            "states": [
                state(
                    summary("nv/cold/time/gpu/mean", "4.1e-06"),
                    summary("nv/cold/time/gpu/median", "3.8e-06"),
                    summary("nv/cold/time/gpu/stdev/relative", "0.05"),
                    summary("nv/cold/sample_size", "5000", "int64"),
                )
            ],
        },
        {"name": "older", "states": [state(summary("nv/cold/time/gpu/mean", "2e-06"))]},
        {"name": "skipped", "states": [state(is_skipped=True, skip_reason="no memory")]},
        {"name": "empty", "states": [{"summaries": None}]},
        {"name": "endless", "states": [state(summary("nv/cold/time/gpu/mean", "inf"))]},
    ]
    found = list(nvbench.parse(benchmarks, {"relu_64KiB": 0.7}, 3))
    assert found == [
        Reading("nvbench", "relu_64KiB", 3, pytest.approx(3_800.0), 5000, 0.7, 0.05),
        Reading("nvbench", "older", 3, pytest.approx(2_000.0), 0, 0.0, None),
        Missing("nvbench", "no memory", "skipped", 3),
        Missing("nvbench", "gave no cold GPU time", "empty", 3),
        Missing("nvbench", "gave no cold GPU time", "endless", 3),
    ]


def test_torchs_own_benchmark_times_the_call():
    import time

    spans = peers.torch_benchmark(lambda: time.sleep(0.002))
    assert min(spans) >= 2e6 and sorted(spans)[len(spans) // 2] < 2e7


def test_what_is_not_installed_or_not_for_this_device_is_said():
    assert peers.not_installed("torch", "torch") is None
    assert peers.not_installed("no_such_package.bench", "it") == "not installed; type: pip install it"
    assert peers.not_installed("torch.no_such_module", "it") == "not installed; type: pip install it"
    absent = absent_peers("cpu")
    assert absent == {"nvbench": "needs a GPU", "do_bench": "needs a GPU", "ncu": "needs a GPU"}
    assert "torch_benchmark" not in absent_peers("cuda")
