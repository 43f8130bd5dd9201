"""The energy table: joules, against eager's, and what a watt brings. No figure here was measured."""

from __future__ import annotations

import re

import pytest

from groundspeed.report.energy import energy_table, has_energy, per_watt
from groundspeed.report.style import Style, width
from groundspeed.report.units import energy
from tests.cli.records_for_tests import bad, ok, record, store
from tests.cli.toy_project import groundspeed

NARROW = Style(colour=False, width=80)


@pytest.mark.parametrize(
    ("nanojoules", "shown"), [(12.3, "12.3 nJ"), (4.567e3, "4.57 µJ"), (1e6, "1.00 mJ"), (2.5e9, "2.50 J")]
)
def test_the_unit_is_chosen_by_size(nanojoules, shown):
    assert energy(nanojoules) == shown


def test_each_case_from_the_least_to_the_most_against_eager():
    lines = energy_table(
        record(
            ok("torch_eager", 254, energy_nj=80e6, flops=0),
            ok("triton_row", 127, energy_nj=40e6, flops=int(2e12)),
            ok("cupy_raw", 127, energy_nj=None),
            bad("cuda_a", "failed", "boom", "error"),
        ),
        NARROW,
    )
    text = "\n".join(lines)
    assert text.index("triton_row") < text.index("torch_eager") and "cupy_raw" not in text and "cuda_a" not in text
    row = next(line for line in lines if "triton_row" in line)
    # 2 TFLOP in 40 mJ are 50 TFLOP/s a watt
    assert re.sub(" +", " ", row).strip() == "triton_row 40.0 mJ 0.500× 50.0 TFLOP/s/W"
    # 2 × 128 MiB in 80 mJ
    assert "3.36 GB/s/W" in next(line for line in lines if "torch_eager" in line)
    assert max(map(width, lines)) <= 80


def test_nothing_measured_says_what_to_type():
    one = record(ok("torch_eager", 254))
    assert not has_energy(one) and "--energy" in "\n".join(energy_table(one, NARROW))
    assert per_watt(one.measurements[0]) == "–"


def test_the_command_shows_it(tmp_path):
    from tests.cli import toy_project

    root = toy_project.make(tmp_path / "p", double={})
    store(root / "results", record(ok("torch_eager", 254, energy_nj=80e6), machine="nvidia-h200"))
    done = groundspeed("table", "--quantity", "energy", cwd=root)
    assert done.returncode == 0 and "80.0 mJ" in done.stdout, done.stdout + done.stderr
