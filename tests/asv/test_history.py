"""asv over six commits with the real engine on the CPU: today's harness, specs and lists over past implementations."""

from __future__ import annotations

import math
import statistics
import sysconfig
from pathlib import Path

import pytest

from groundspeed.records import Measurement
from tests.asv.scratch import ResultFile, Scratch, make_scratch

SMALL = {"GROUNDSPEED_DEVICE": "cpu", "GROUNDSPEED_TIER": "small"}
NEEDLESS = "[x.neg() for _ in range(400)][0].neg().clamp(min=0)"  # exact, and 401 calls of ATen more
NANO = 1e-9


@pytest.mark.quiet
@pytest.mark.slow
def test_six_commits_with_everything_that_happens_to_a_repository(tmp_path: Path) -> None:
    project = make_scratch(tmp_path, ("relu",))
    base = project.commit("the harness and a baseline")
    project.implementation("relu", "torch_where", expression="torch.where(x > 0, x, torch.zeros_like(x))")
    project.implementation("relu", "torch_old", expression="torch.relu(x)")
    start = project.commit("start")
    project.implementation("relu", "torch_where", expression=NEEDLESS)
    regressed = project.commit("plant a regression")
    project.write("impls/relu/torch_old.py", "raise RuntimeError('half finished')\n")
    broken = project.commit("break one")
    project.implementation("relu", "torch_old", expression="torch.relu(x)")
    project.implementation("relu", "torch_maximum", expression="torch.maximum(x, torch.zeros_like(x))")
    added = project.commit("mend it, and add one in the middle of the list")
    project.git("mv", "impls/relu/torch_old.py", "impls/relu/torch_relu.py")
    renamed = project.commit("rename one")
    spec = project.root / "impls/relu/spec.py"
    spec.write_text(spec.read_text().replace("N=1024", "N=2048").replace('"N": 1024', '"N": 2048'))
    respecified = project.commit("change the spec's shapes")
    commits = [start, regressed, broken, added, renamed, respecified]
    before = installed()

    project.asv("run", f"{base}..HEAD", **SMALL)

    assert installed() == before
    assert not list(project.root.glob(".asv/env/**/bin/python*")), "an environment was made"
    records = {record.header.commit: record for record in project.records()}
    assert set(records) == set(commits) and len(project.records()) == 6
    names = ["torch_eager", "torch_maximum", "torch_relu", "torch_where"]
    cold = {commit: column(project, commit) for commit in commits}
    for commit in commits:
        assert list(dict.fromkeys(key[0] for key in cold[commit])) == names, "not today's list"
        assert {key[2] for key in cold[commit]} == {"N=2048", "N=4096"}, "not today's shapes"
        measured = {(m.implementation, m.shape_label): m for m in records[commit].measurements}
        assert {shape for _, shape in measured} == {"N=2048"}, "a past spec chose the cases"
        for name in names:
            agrees(cold[commit][name, "float32", "N=2048"], measured.get((name, "N=2048")))
    absent = {commit: {n for n in names if is_nan(cold[commit][n, "float32", "N=2048"])} for commit in commits}
    assert absent == {
        start: {"torch_maximum", "torch_relu"},
        regressed: {"torch_maximum", "torch_relu"},
        broken: {"torch_maximum", "torch_relu"},
        added: {"torch_relu"},
        renamed: set(),
        respecified: set(),
    }
    (failure,) = [m for m in records[broken].measurements if m.status == "failed"]
    assert failure.implementation == "torch_old" and "half finished" in failure.reason
    assert len({m.case_digest for record in records.values() for m in record.measurements}) == 1
    where = {commit: cold[commit]["torch_where", "float32", "N=2048"] for commit in commits}
    assert all(where[commit] > 1.5 * where[start] for commit in commits[1:]), where


def column(project: Scratch, commit: str) -> dict[tuple[str, ...], float]:
    (path,) = project.root.glob(f"results/*/{commit[:8]}-*.json")
    return ResultFile.read(path).column("device_time.relu.cold", "result")


def agrees(value: float | None, measurement: Measurement | None) -> None:
    """asv's number is the record's median; a failure is null and what is not there NaN."""
    if measurement is None:
        assert is_nan(value)
    elif measurement.status == "failed":
        assert value is None
    else:
        assert value == pytest.approx(NANO * statistics.median(measurement.samples["device_cold"]), rel=1e-9)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def installed() -> list[tuple[str, int]]:
    """What this interpreter has; a package that was installed anew has another time."""
    site = Path(sysconfig.get_paths()["purelib"])
    return sorted((path.name, path.stat().st_mtime_ns) for path in site.iterdir() if path.suffix == ".dist-info")
