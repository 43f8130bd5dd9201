"""What a calibration comes to: values, scatter, floors, and whether the bounds hold."""

from __future__ import annotations

import statistics

import msgspec
import numpy as np
import pytest

from groundspeed.analysis.rule import noise_floor
from groundspeed.calibrate.schema import Clocked, Missing, Reading
from groundspeed.calibrate.summary import absent, figure, figures, flush_effect, gaps, noise_lines, verdicts
from groundspeed.gate.floors import noise_folder, read_floors, write_noise
from groundspeed.records import Environment
from tests.calibrate.make import calibration, readings


def test_the_figure_of_a_probe_is_the_median_of_its_processes_and_their_scatter():
    values = [10.0, 11.0, 13.0]
    spent = [Reading("cupti", "p", n, value, 60, 0.1 * n, 0.01 * n) for n, value in enumerate(values)]
    found = figure(spent)
    assert (found.value, found.low, found.high, found.processes) == (11.0, 10.0, 13.0, 3)
    assert found.cv == pytest.approx(statistics.stdev(values) / statistics.mean(values))
    assert found.spread == pytest.approx(0.01) and found.seconds == pytest.approx(0.1)
    alone = figure([Reading("ncu", "p", 0, 5.0, 3, 1.0)])
    assert alone.cv is None and alone.spread is None


def test_what_scatters_is_told_with_the_clocks_that_it_ran_at():
    """Twice as slow at half the clock is the same number of cycles."""
    mhz = {n: 1980 if n % 2 else 990 for n in range(12)}
    own = [
        msgspec.structs.replace(one, value_ns=1e9 / mhz[one.process]) if one.probe == "relu_64MiB" else one
        for one in readings("cupti", scatter=0.0)
    ]
    slow = ("software power cap",)
    clocked = [Clocked("relu_64MiB", n, mhz[n], 650.0, () if n % 2 else slow) for n in mhz]
    first, *_ = verdicts(calibration(readings=own, clocked=clocked))
    (told,) = first.exceptions
    assert told.endswith(
        "; right after it 990 to 1980 MHz (software power cap in 6 of 12 processes), 650 W; in cycles 0.00 %"
    )
    (without,) = verdicts(calibration(readings=own))[0].exceptions
    assert "MHz" not in without


def test_noise_lines_are_what_the_gate_reads(tmp_path):
    lines = noise_lines(calibration())
    write_noise(noise_folder(tmp_path, "nvidia-h200"), "run", lines)
    floors = read_floors(noise_folder(tmp_path, "nvidia-h200"))
    key = ("calibrate", "torch_relu", "float32", "N=16384", "device_cold")
    assert floors[key] == pytest.approx(noise_floor(np.array([0.001 * (-1) ** n for n in range(12)])))
    assert {line.metric for line in lines} == {"device_cold", "device_hot"} and len(lines) == 6


@pytest.mark.parametrize(
    ("changes", "long", "short"),
    [
        ({}, True, True),
        ({"relu_64MiB": 0.02}, False, True),  # one of two over 3 µs is beyond: 50 %
        ({"relu_64KiB": 0.01}, True, True),  # under 3 µs, 1 % is within
        ({"relu_64KiB": 0.02}, True, False),
    ],
)
def test_the_bounds_on_scatter(changes, long, short):
    own = [
        msgspec.structs.replace(one, value_ns=one.value_ns * (1 + changes.get(one.probe, 0.0) * (-1) ** one.process))
        for one in readings("cupti", scatter=0.0)
    ]
    first, second, *_ = verdicts(calibration(readings=own))
    assert (first.held, second.held) == (long, short)
    named = [exception.partition(":")[0] for one in (first, second) for exception in one.exceptions]
    assert named == ([] if long and short else list(changes))
    if named:
        assert "processes from" in (first.exceptions + second.exceptions)[0]


def test_nine_of_ten_are_enough_over_three_microseconds():
    many = {f"p{number}": 5_000.0 for number in range(10)}
    steady = [Reading("cupti", probe, n, value, 60, 0.1) for probe, value in many.items() for n in range(3)]
    restless = [msgspec.structs.replace(one, value_ns=one.value_ns * (1 + 0.1 * one.process)) for one in steady]

    def held(beyond: int):
        mixed = [r if int(r.probe[1:]) < beyond else s for r, s in zip(restless, steady, strict=True)]
        return verdicts(calibration(readings=mixed))[0]

    assert held(1).held and held(1).found == "9 of 10 (90 %)" and len(held(1).exceptions) == 1
    assert not held(2).held


def test_one_process_judges_no_scatter():
    first, second, *_ = verdicts(calibration(readings=readings("cupti", processes=1)))
    assert first.held is None and second.held is None


def test_nearness_to_nsight_compute():
    near = calibration(*readings("ncu", scatter=0.0, processes=1))
    assert verdicts(near)[2].held and verdicts(near)[2].found == "-2.9 % to -2.9 %"
    far = calibration(*readings("ncu", scatter=0.0, processes=1, relu_64MiB=33_000.0, relu_64KiB=9_000.0))
    found = verdicts(far)[2]
    assert found.held is False and found.exceptions == ("relu_64MiB: -11.7 %",), "below 20 µs nothing is asked"
    why = verdicts(calibration(missing=[Missing("ncu", "not permitted")]))[2]
    assert why.held is None and why.found == "no figures of Nsight Compute: not permitted"


def test_twelve_processes_in_four_minutes():
    assert [verdicts(calibration(seconds=seconds))[3].held for seconds in (240.0, 241.0)] == [True, False]
    few = verdicts(calibration(processes=3, seconds=999.0))[3]
    assert few.held is None and few.found == "3 ran, in 16 min 39 s"


def test_a_cpu_is_not_judged_by_a_gpus_bounds():
    cpu = Environment(device="cpu", device_name="CPU", python="3.12", os="Linux")
    (only,) = verdicts(calibration(environment=cpu))
    assert only.held is None and "GPU" in only.found


def test_what_the_flush_does_is_said_of_memory_bound_probes_alone():
    both = calibration(*readings("cupti_memset", scatter=0.0), *readings("nvbench", scatter=0.0, matmul_2048=9e9))
    assert flush_effect(both) == (
        "Over the memory-bound probes of 20 µs and more, against our read flush: our spans read +10.0 % (+10.0 % to "
        "+10.0 %) with a memset flush; NVBench reads +20.0 % (+20.0 % to +20.0 %)."
    )
    assert flush_effect(calibration()) == ""


def test_what_is_not_there_is_named_once_with_its_reason():
    missing = [
        Missing("nvbench", "not installed"),
        Missing("cupti", "TimerError: lost", "relu_64KiB", 3),
        Missing("cupti", "TimerError: lost", "relu_64KiB", 4),
        Missing("", "the process was lost: it ended with status 1", process=5),
    ]
    one = calibration(missing=missing)
    assert absent(one) == {"NVBench": "not installed"}
    assert gaps(one) == [
        "relu_64KiB groundspeed: TimerError: lost",
        "process 5: the process was lost: it ended with status 1",
    ]


def test_every_probe_and_method_has_a_figure():
    assert set(figures(calibration())) == {
        (probe, method) for probe in ("relu_64KiB", "relu_64MiB", "matmul_2048") for method in ("cupti", "cupti_hot")
    }
