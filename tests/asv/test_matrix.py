"""A matrix over two versions of a package named torch, both made here: what asv asks for is what measures.

Covered: that each combination runs in an interpreter with its own version, all else shared, and is filed as asv files
a matrix. Not covered: installing the real torch twice, and its CUDA libraries.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from dashboard.store import SERIES, open_store
from tests.asv.scratch import ROOT, ResultFile, Scratch, make_scratch

FULL = {"GROUNDSPEED_TIER": "full", "GROUNDSPEED_DEVICE": "cpu"}
VERSIONS = ("1.0", "2.0")


def wheel(folder: Path, name: str, version: str) -> None:
    """The smallest package that pip installs."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


@pytest.fixture
def project(tmp_path: Path) -> Scratch:
    project = make_scratch(tmp_path, ("softmax",))
    shutil.copy(ROOT / "tests/asv/fake_measure.py", project.root / "groundspeed/fake_measure.py")
    with (project.root / "groundspeed/session.py").open("a") as session:
        session.write("\n\nfrom groundspeed.fake_measure import measure_operator\n")
    configuration = (project.root / "asv.conf.json").read_text()
    matrix = json.dumps({"req": {"torch": list(VERSIONS)}})
    project.write("asv.conf.json", configuration.replace('"version": 1,', f'"version": 1,\n    "matrix": {matrix},'))
    project.commit("a matrix")
    return project


def offline(tmp_path: Path) -> dict[str, str]:
    """pip with the two wheels and nothing else."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in VERSIONS:
        wheel(wheels, "torch", version)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.mark.slow
def test_each_version_measures_and_is_filed_apart(project: Scratch, tmp_path: Path) -> None:
    pip = offline(tmp_path)
    project.asv("run", **FULL, **pip)
    files = {path.name.partition("-")[2]: ResultFile.read(path).raw for path in project.result_files()}
    assert [name.partition("-torch")[2] for name in sorted(files)] == ["1.0.json", "2.0.json"]
    assert sorted(raw["params"]["torch"] for raw in files.values()) == list(VERSIONS)
    records = project.records()
    assert sorted((r.header.matrix, r.header.environment.torch) for r in records) == [
        ("torch1.0", "1.0"),
        ("torch2.0", "2.0"),
    ]
    assert len({record.header.run_id for record in records}) == 2

    made = {path: path.stat().st_mtime_ns for path in project.root.glob(".asv/env/*/venv/pyvenv.cfg")}
    assert len(made) == 2
    project.asv("run", "--bench", "softmax", **FULL, PIP_NO_INDEX="1")  # without the wheels: they are installed
    assert made == {path: path.stat().st_mtime_ns for path in project.root.glob(".asv/env/*/venv/pyvenv.cfg")}

    shown = open_store(project.root / "results").snapshot.latest
    series = shown.filter(project="groundspeed", implementation="torch_eager", case="float32 N=1024")
    assert sorted(series["environment"]) == ["torch1.0", "torch2.0"]
    assert series.select(SERIES).unique().height == 2
    project.asv("publish")
    index = json.loads((project.root / ".asv/html/index.json").read_text())
    assert sorted(index["params"]["torch"]) == list(VERSIONS)


def test_a_version_that_cannot_be_had_is_an_error_and_measures_nothing(project: Scratch) -> None:
    output = project.asv("run", expect=1, **FULL, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    (line,) = [line for line in output.splitlines() if "the matrix's environment cannot be made: ERROR: " in line]
    assert "torch==1.0" in line.partition("the command:")[0]
    assert "Traceback" not in output
    assert not project.sweeps() and not project.result_files()
    assert not list(project.root.glob(".asv/env/*/requirements.json")), "half an environment counts as made"
