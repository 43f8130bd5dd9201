"""How long the gate of a change of one kernel takes, all its cases, on the GPU that the limits are for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from groundspeed.gate.trials.catalog import plants_of
from groundspeed.machine import machine_name
from groundspeed.tree import Tree

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

IMPLS = Path(__file__).parents[2] / "impls"
WITHOUT_SUSPECTS_S, WITH_SUSPECTS_S = 60, 150
# The same computation in other words: new code to compile, nothing to find.
REWORDED = {
    "triton_row.py": (
        "    result = exponentials / tl.sum(exponentials, axis=0)\n",
        "    total = tl.sum(exponentials, axis=0)\n    result = exponentials / total\n",
    ),
    "cuda_block.cu": (
        "  for (int i = 0; i < kElements; ++i) values[i] *= scale;\n",
        "  for (int i = 0; i < kElements; ++i) values[i] = values[i] * scale;\n",
    ),
}


@pytest.fixture
def real(repo):
    """The scratch repository with the project's own softmax and the gate's defaults."""
    if machine_name("cuda") != "nvidia-h200":
        pytest.skip(f"the limits are for nvidia-h200, this is {machine_name('cuda')}")
    repo.git("checkout", "-q", "main")
    shutil.rmtree(repo.root / "impls")
    shared = [folder.name for folder in IMPLS.iterdir() if folder.name.startswith("_")]
    for name in ("softmax", *shared):
        shutil.copytree(IMPLS / name, repo.root / "impls" / name, ignore=shutil.ignore_patterns("__pycache__"))
    repo.commit("Start")
    repo.git("checkout", "-q", "-B", "topic")
    return repo


def told(result, capsys):
    with capsys.disabled():
        print("\n" + " ".join(result.output[result.output.index("took ") :].split()))
    return result.report["seconds"]


@pytest.mark.parametrize("file", REWORDED)
def test_a_change_without_suspects(real, real_engine, capsys, file):
    path = f"impls/softmax/{file}"
    assert (real.root / path).read_text().count(REWORDED[file][0]) == 1, f"{path} has changed: mend the test"
    real.edit(path, *REWORDED[file])
    real.commit("Say it in other words")
    result = real.gate("--base", "main", engine=real_engine, device="cuda")
    assert result.status == 0 and len(result.findings(metric="device_cold")) == 15, result.output
    suspected = len(result.report["steps"]) > 1  # something may look changed by chance
    assert told(result, capsys) <= (WITH_SUSPECTS_S if suspected else WITHOUT_SUSPECTS_S)


def test_a_change_with_suspects(real, real_engine, capsys):
    (plant,) = [plant for plant in plants_of("softmax") if plant.implementation == "triton_row"]
    cases = Tree(real.root / "impls").spec("softmax").bench_cases
    plant.write(real.root / "impls", {case: max(1, plant.units(case) // 10) for case in cases})
    real.commit("Do a tenth of the rows twice")
    result = real.gate("--base", "main", engine=real_engine, device="cuda")
    assert result.status == 1 and len(result.report["steps"]) == 2, result.output
    assert told(result, capsys) <= WITH_SUSPECTS_S
