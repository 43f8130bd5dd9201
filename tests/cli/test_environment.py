"""What `make` runs with: tools/environment.py, its choice, its refusals and its borrowing of a GPU machine's torch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.cli.toy_project import ROOT

SCRIPT = ROOT / "tools" / "environment.py"
SPEC = importlib.util.spec_from_file_location("environment", SCRIPT)
environment = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(environment)


@pytest.fixture
def gpu(tmp_path):
    """Variables under which the machine seems to have a GPU, and no index can be reached."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA Test (UUID: GPU-0)'\n")
    tool.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "", "PYTHONPATH": ""}  # fmt: skip


def make(venv, env, *arguments):
    command = [sys.executable, str(SCRIPT), "--venv", str(venv), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_a_gpu_machines_torch_is_borrowed_and_nothing_downloaded(gpu, tmp_path):
    done = make(tmp_path / "venv", gpu)
    assert done.returncode == 0, done.stderr
    python = done.stdout.strip()
    assert python == str(tmp_path / "venv" / "bin" / "python")
    program = "import torch, numpy, msgspec, groundspeed; print(torch.__file__, groundspeed.__file__)"
    seen = subprocess.run([python, "-c", program], cwd=tmp_path, env=gpu, capture_output=True, text=True, timeout=120)
    torch_file, own_file = seen.stdout.split()
    assert torch_file == importlib.util.find_spec("torch").origin
    assert own_file == str(ROOT / "groundspeed" / "__init__.py")
    script = [str(tmp_path / "venv" / "bin" / "groundspeed"), "--version"]
    assert subprocess.run(script, cwd=tmp_path, env=gpu, capture_output=True, text=True).stdout.startswith(
        "groundspeed"
    )


def test_what_measuring_cannot_do_without_is_an_error_that_says_what_to_do(gpu, tmp_path):
    """Packages without msgspec: seen by an interpreter that has torch alone."""
    site = tmp_path / "site"
    site.mkdir()
    for name in ("torch", "numpy"):
        (site / name).mkdir()
        (site / f"{name}-1.dist-info").mkdir()
        (site / f"{name}-1.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (site / name / "__init__.py").write_text("")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", str(bare)], check=True)
    env = {**gpu, "PYTHONPATH": str(site), "GROUNDSPEED_WHEELS": str(tmp_path)}
    command = [str(bare / "bin" / "python"), str(SCRIPT), "--venv", str(tmp_path / "venv")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "msgspec missing" in done.stderr and "GROUNDSPEED_WHEELS" in done.stderr
    assert "Traceback" not in done.stderr


def test_requirements_unfold_our_own_extras():
    core = environment.requirements(())
    dev = environment.requirements(("dev",))
    assert any(r.startswith("torch") for r in core) and not any("<" in r for r in core if r.startswith("torch"))
    assert set(core) < set(dev) and any(r.startswith("dash>") for r in dev)
    assert any(r.startswith("pytest-benchmark") for r in dev) and not any("groundspeed" in r for r in dev)


def test_the_fingerprint_follows_extras_and_interpreter_kind():
    one = environment.fingerprint(("dev",), False, False)
    assert one == environment.fingerprint(("dev",), False, False)
    assert one.partition("-")[0] == environment.fingerprint((), False, False).partition("-")[0]
    assert one != environment.fingerprint((), False, False)
    assert one.partition("-")[0] != environment.fingerprint(("dev",), False, True).partition("-")[0]


def test_a_python_that_is_too_old_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(environment.sys, "version_info", (3, 10, 1))
    monkeypatch.setattr(environment.sys, "argv", ["environment.py"])
    assert environment.main() == 2
    assert "3.11 to 3.13" in capsys.readouterr().err


def test_the_cpu_build_of_torch_is_pinned_in_the_constraints_only():
    assert "torch==2.13.0" in (ROOT / "constraints" / "cpu.txt").read_text().splitlines()
    assert "torch==" not in (ROOT / "pyproject.toml").read_text()
