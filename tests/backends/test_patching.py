"""A library that patches torch and is not declared alone costs its own rows and one worker, and nobody else's rows."""

from __future__ import annotations

import pytest

from groundspeed.measure.process import worker_environment
from groundspeed.measure.supervisor import supervise
from groundspeed.records import SUFFIX, read_record
from tests.cli import toy_project
from tests.core.scratch import job, make_tree, rows_by_name
from tests.paths import ROOT, python_path
from tests.ranks.scratch import EAGER, SPEC

pytestmark = pytest.mark.slow

PATCHES = "import torch\n\ntorch.add = lambda x, y: x\n"
# Written with torch.add: wrong wherever the patch is.
ADDS = '"""By torch.add."""\n\nimport torch\n\n\ndef prepare(x):\n    return lambda: torch.add(x, x)\n'
PATCHING = f'"""By a library that patches torch."""\n\nimport patching\n\n{ADDS}'
BREAKING = f'"""By one that patches torch and then cannot be imported."""\n\nimport breaking\n\n{ADDS}'
REASON = "importing it changes torch for every other implementation: torch.add; declare oneDNN alone in"


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "patching.py").write_text(PATCHES)
    (folder / "breaking.py").write_text(f"{PATCHES}\nraise ImportError('libbreaking.so.1 is missing')\n")
    return folder


@pytest.fixture
def project(tmp_path):
    files = {"onednn_breaking": BREAKING, "onednn_patching": PATCHING, "torch_adds": ADDS, "jax_last": ADDS}
    return toy_project.make(tmp_path / "project", double=files)


def groundspeed(project, site, *arguments):
    return toy_project.groundspeed(
        *arguments, cwd=project, PYTHONPATH=python_path(ROOT, site), GROUNDSPEED_DEVICE="cpu"
    )


def test_in_a_check_the_others_are_judged_with_torch_as_it_is(project, site):
    done = groundspeed(project, site, "check", "double/torch_*", "double/onednn_patching")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"error: double/onednn_patching: {REASON}" in " ".join(done.stdout.split())
    assert "6 checks failed, 12 passed, 0 skipped" in done.stdout


def test_in_a_run_they_are_timed_with_torch_as_it_is(project, site, tmp_path):
    done = groundspeed(project, site, "run", "--only", "double", "--results", str(tmp_path / "results"))
    assert done.returncode == 1, done.stdout + done.stderr
    (path,) = (tmp_path / "results").rglob(f"double{SUFFIX}")
    record = read_record(path)
    rows = {row.implementation: row for row in record.measurements}
    assert {name: row.status for name, row in rows.items() if name != "jax_last"} == {
        "torch_eager": "ok",
        "torch_adds": "ok",
        "onednn_breaking": "failed",
        "onednn_patching": "failed",
    }
    assert rows["onednn_patching"].failure == "error" and REASON in rows["onednn_patching"].reason
    assert " in load" not in rows["onednn_patching"].reason
    also = "implementation and fails with ImportError: libbreaking.so.1 is missing: torch.add; declare"
    assert rows["onednn_breaking"].failure == "error" and also in rows["onednn_breaking"].reason
    assert rows["jax_last"].status in ("ok", "skipped")  # skipped where JAX is not installed
    assert len(rows["torch_eager"].samples["device_cold"]) == len(rows["torch_adds"].samples["device_cold"])
    assert "onednn" in record.header.environment.libraries  # oneDNN's, though its implementations have no worker left


def test_over_ranks_the_crew_is_started_anew_without_it(tmp_path, site):
    patching = EAGER.replace("import os", "import patching\nimport os")
    adds = EAGER.replace("y = x.clone()", "y = torch.add(x, x) / 2")
    tree = make_tree(
        tmp_path / "tree",
        {"total": {"spec": SPEC, "torch_eager": EAGER, "onednn_patching": patching, "torch_adds": adds}},
    )
    environment = worker_environment({"PYTHONPATH": python_path(ROOT, site)})
    outcome = supervise(job(tree, "total", check_only=True), environment, lambda where: None)
    rows = rows_by_name(outcome)
    assert outcome.problem == ""
    for row in rows["onednn_patching"][:2]:
        assert (row.status, row.failure) == ("failed", "error") and f"total/onednn_patching: {REASON}" in row.reason
    assert [[row.status for row in rows[name][:2]] for name in ("torch_eager", "torch_adds")] == [["ok"] * 2] * 2
