"""`groundspeed run --shard` and `groundspeed merge`, for real: the same records as without them, times aside."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from groundspeed.records import SELECTION_FILE, find_records, read_record
from tests.cli import toy_project
from tests.cli.toy_project import ADD, ROOT, groundspeed

pytestmark = pytest.mark.slow
OPERATORS = ("relu", "copy", "add")
TIMES = {"samples", "prepare_ns", "first_run_ns", "unstable", "clocks", "energy_nj", "kernel_ns", "notes"}


def commit(root):
    name = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", *name, "commit", "-qm", "Begin"], cwd=root, check=True)


def at_once(do, indices):
    """As on runners of their own: index and what came of it, in this order."""
    with ThreadPoolExecutor(len(indices)) as pool:
        return list(zip(indices, pool.map(do, indices), strict=True))


def without_times(path):
    record = read_record(path)
    header = msgspec.structs.replace(record.header, run_id="", started="", ceilings=None)
    rows = [{k: v for k, v in msgspec.structs.asdict(row).items() if k not in TIMES} for row in record.measurements]
    return header, rows, sorted(record.footer.seconds)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with some of our own operators, committed."""
    root = tmp_path_factory.mktemp("shards") / "p"
    (root / "impls").mkdir(parents=True)
    (root / "asv.conf.json").write_text("{}")
    for folder in (ROOT / "impls").iterdir():
        if folder.name in OPERATORS or (folder.is_dir() and folder.name.startswith("_")):
            shutil.copytree(folder, root / "impls" / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    commit(root)
    return root


def run(project, *arguments):
    only = [word for operator in OPERATORS for word in ("--only", f"{operator}/torch_eager")]
    return groundspeed("run", *only, *arguments, cwd=project, GROUNDSPEED_DEVICE="cpu")


def test_three_shards_merged_are_the_run_uncut(project, tmp_path):
    whole = run(project, "--results", str(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    for index, done in at_once(
        lambda index: run(project, "--shard", f"{index}/3", "--results", str(tmp_path / f"shard-{index}")), (3, 1, 2)
    ):
        assert done.returncode == 0, done.stderr
        assert f"shard {index}/3: " in done.stderr and "of 3 operators" in done.stderr
    shards = [str(tmp_path / f"shard-{index}") for index in (1, 2, 3)]
    merged = groundspeed("merge", *shards, "--into", str(tmp_path / "all"), cwd=project)
    assert merged.returncode == 0, merged.stderr
    assert merged.stderr == "" and "(3 records added)" in merged.stdout
    one, other = find_records(tmp_path / "whole"), find_records(tmp_path / "all")
    assert [path.name for path in one] == [path.name for path in other] and len(one) == 3
    assert list(map(without_times, one)) == list(map(without_times, other))
    assert (one[0].parent / SELECTION_FILE).read_bytes() == (other[0].parent / SELECTION_FILE).read_bytes()
    assert len({path.parent.name for path in other}) == 1

    missing = groundspeed("merge", *shards[:2], "--into", str(tmp_path / "some"), cwd=project)
    assert missing.returncode == 2 and missing.stderr.splitlines() == [
        "groundspeed: shard 3 of 3 is missing; to merge what there is all the same, add --partial"
    ]


@pytest.fixture
def toy(tmp_path):
    root = toy_project.make(tmp_path / "p", one={"torch_add": ADD}, two={}, three={})
    commit(root)
    return root


def toy_run(toy, *arguments):
    return groundspeed("run", *arguments, cwd=toy, GROUNDSPEED_DEVICE="cpu")


def test_a_shard_goes_on_as_it_was_cut_and_may_be_empty(toy, tmp_path):
    """Durations that are stored between the break and the going on must not move an operator to another shard."""
    first = toy_run(toy, "--shard", "1/2")
    assert first.returncode == 0 and "shard 1/2: 1 of 3 operators" in first.stderr and ": one\n" in first.stderr
    (path,) = find_records(toy / "results")
    path.unlink()
    again = toy_run(toy, "--resume", path.parent.name)
    assert again.returncode == 0 and "shard 1/2: 1 of 3 operators" in again.stderr, again.stderr
    assert [found.name for found in find_records(toy / "results")] == [path.name]
    other = toy_run(toy, "--resume", path.parent.name, "--shard", "2/2")
    assert other.returncode == 2 and "began with --shard 1/2" in other.stderr

    empty = toy_run(toy, "--shard", "4/4", "--results", str(tmp_path / "empty"))
    assert empty.returncode == 0 and "shard 4/4: 0 of 3 operators" in empty.stderr and "none" in empty.stderr
    assert not find_records(tmp_path / "empty") and list((tmp_path / "empty").rglob(SELECTION_FILE))


def test_what_this_commit_stored_does_not_move_the_cut(toy):
    """A shard that begins when another has stored its own durations is cut as that one was."""
    for index in (1, 2):
        done = toy_run(toy, "--shard", f"{index}/2")
        assert done.returncode == 0, done.stderr
    cuts = [msgspec.json.decode(file.read_bytes())["shard"] for file in (toy / "results").rglob(SELECTION_FILE)]
    assert cuts[0]["inventory"] == cuts[1]["inventory"]
    assert sorted(name for one in cuts for name in one["operators"]) == ["one", "three", "two"]
