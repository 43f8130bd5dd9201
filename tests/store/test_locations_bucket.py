"""Results in a bucket, on a real S3-compatible server: pushed, pulled, read, by several at once, and refused."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard import triage
from dashboard.store import open_store
from groundspeed.cli import main
from groundspeed.locations.mirror import mirror_of, synchronised
from groundspeed.locations.place import Bucket
from groundspeed.records import find_records, read_record
from tests.store import make
from tests.store.locations import SECRET, credentials, groundspeed, make_bucket, s3_server

pytest.importorskip("s3fs", reason="s3:// needs the extra remote")
pytest.importorskip("moto", reason="moto's server stands for S3")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URL of a new bucket that the environment gives access to; the cache of mirrors is the test's own."""
    for name, value in {**credentials(server), "GROUNDSPEED_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return f"s3://{make_bucket(server)}/years"


def _record(results: Path, number: int, **changes: object) -> Path:
    return make.record(results, make.measurement(time=100.0 + number), run_id=f"2026010{number}T000000Z-x", **changes)


def _files(folder: Path) -> dict[str, bytes]:
    hidden = [path for path in folder.rglob("*") if path.is_file()]
    shown = [path for path in hidden if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in shown}


def test_what_is_pushed_is_what_another_machine_pulls(bucket: str, tmp_path: Path, capsys) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    _record(here, 1)
    make.asv(here, {"time_x": [[1.0], []]})
    (here / "nvidia-h200" / "noise").mkdir()
    (here / "nvidia-h200" / "noise" / "softmax.json").write_text("{}")
    (here / ".cache").mkdir()
    (here / ".cache" / "index").write_text("of no use elsewhere")
    assert main(["store", "push", bucket, "--results", str(here)]) == 0
    assert capsys.readouterr().out == f"{bucket}: 4 files added, 0 there already\n"
    assert main(["store", "push", bucket, "--results", str(here)]) == 0
    assert capsys.readouterr().out == f"{bucket}: 0 files added, 4 there already\n"
    assert main(["store", "pull", bucket, "--results", str(there)]) == 0
    assert _files(there) == _files(here)
    assert main(["store", "pull", bucket, "--results", str(there)]) == 0
    assert capsys.readouterr().out.endswith("0 files added, 4 there already\n")


def test_every_command_that_reads_results_reads_a_bucket(bucket: str, tmp_path: Path, capsys) -> None:
    here = tmp_path / "here"
    for number in range(1, 4):
        _record(here, number, commit=f"{number:040}", commit_time=f"2026-01-0{number}T00:00:00+00:00")
    assert main(["store", "push", bucket, "--results", str(here)]) == 0
    project = ["--project", str(Path(__file__).resolve().parents[2])]
    for typed in (
        ["history", "softmax"],
        ["best", "softmax"],
        ["export", str(tmp_path / "page.html")],
        ["store", "verify"],
        ["store", "compact"],
        ["store", "prune", "--keep", "1"],
        ["table", "--machine", "nvidia-h200"],
        ["table", "--runs", "--machine", "nvidia-h200"],
        ["compare", "20260101T000000Z-x", "20260103T000000Z-x"],
        ["claims", "--machine", "nvidia-h200"],
    ):
        capsys.readouterr()
        status = main([typed[0], *project, *typed[1:], "--results", bucket])
        out, err = capsys.readouterr()
        assert status == 0, f"{typed}: {out}{err}"
    assert (tmp_path / "page.html").stat().st_size > 100_000


def test_a_dashboard_shows_what_is_pushed_while_it_is_open(bucket: str, tmp_path: Path) -> None:
    """And what is noted there reaches the bucket, beside what others noted."""
    here = tmp_path / "here"
    _record(here, 1)
    main(["store", "push", bucket, "--results", str(here)])
    place = Bucket(bucket)
    synchronised(place, tmp_path)
    mirror = mirror_of(place, tmp_path)
    store = open_store(mirror)
    assert store.snapshot.rows == 1
    _record(here, 2)
    triage.append(here, "a" * 16, "acknowledged", "", "Ann")
    main(["store", "push", bucket, "--results", str(here)])
    triage.append(mirror, "b" * 16, "noise", "a busy host", "Bob")
    synchronised(place, tmp_path)
    assert store.refresh() and store.snapshot.rows == 2
    main(["store", "pull", bucket, "--results", str(here)])
    for folder in (here, mirror):
        events, problems = triage.read(folder)
        assert [event.who for event in events] == ["Ann", "Bob"] and not problems


def test_prune_deletes_in_the_bucket_and_only_with_yes(bucket: str, tmp_path: Path, capsys) -> None:
    here = tmp_path / "here"
    for number in (1, 2):
        _record(here, number)
    main(["store", "push", bucket, "--results", str(here)])
    assert main(["store", "prune", "--keep", "1", "--results", bucket]) == 0
    main(["store", "pull", bucket, "--results", str(tmp_path / "one")])
    assert len(find_records(tmp_path / "one")) == 2
    assert main(["store", "prune", "--keep", "1", "--yes", "--results", bucket]) == 0
    main(["store", "pull", bucket, "--results", str(tmp_path / "other")])
    assert [path.parent.name for path in find_records(tmp_path / "other")] == ["20260102T000000Z-x"]
    capsys.readouterr()


def test_runners_that_push_at_once_lose_nothing_and_count_nothing_twice(bucket: str, tmp_path: Path) -> None:
    """Four processes; each has a run of its own, and one run that all of them have."""
    runners = []
    for number in range(1, 5):
        results = tmp_path / f"runner{number}"
        _record(results, number)
        _record(results, 9)
        make.asv(results, {f"time_{number}": [[float(number)], []]})
        runners.append(groundspeed(tmp_path, "store", "push", bucket, "--results", str(results)))
    added = 0
    for runner in runners:
        out, err = runner.communicate(timeout=120)
        assert runner.returncode == 0, err
        added += int(out.split(": ")[1].split()[0])
    main(["store", "pull", bucket, "--results", str(tmp_path / "all")])
    records = {path.parent.name: read_record(path) for path in find_records(tmp_path / "all")}
    assert sorted(records) == [f"2026010{number}T000000Z-x" for number in (1, 2, 3, 4, 9)]
    assert added == 5 + 2, "each file was added by one of them: five records, asv's and machine.json"
    assert open_store(tmp_path / "all").snapshot.of(project="groundspeed").collect().height == 5


def test_an_interrupted_push_goes_on(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from groundspeed.locations.bucket import BucketShelf

    here = tmp_path / "here"
    for number in range(1, 6):
        _record(here, number)
    inner, left = BucketShelf._add, [3]

    def add(self: BucketShelf, path: str, payload: bytes) -> bool:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return inner(self, path, payload)

    monkeypatch.setattr("groundspeed.locations.bucket._WRITERS", 1)
    monkeypatch.setattr(BucketShelf, "_add", add)
    assert main(["store", "push", bucket, "--results", str(here)]) == 130
    monkeypatch.setattr(BucketShelf, "_add", inner)
    capsys.readouterr()
    assert main(["store", "push", bucket, "--results", str(here)]) == 0
    assert capsys.readouterr().out == f"{bucket}: 2 files added, 3 there already\n"


def test_half_a_record_is_not_pushed_and_what_is_there_is_never_rewritten(bucket: str, tmp_path: Path, capsys) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    good, half, same = _record(here, 1), _record(here, 2), _record(here, 3)
    half.write_bytes(half.read_bytes()[:-30])
    assert main(["store", "push", bucket, "--results", str(here)]) == 1
    out, err = capsys.readouterr()
    assert out == f"{bucket}: 2 files added, 0 there already\n"
    assert err.startswith("groundspeed: nvidia-h200/records/20260102T000000Z-x/softmax.jsonl.gz: cannot be read")
    whole = good.read_bytes()
    make.record(other, make.measurement(time=7.0), make.measurement("triton_row"), run_id=good.parent.name)
    shutil.copytree(same.parent, other / "nvidia-h200" / "records" / same.parent.name)
    assert main(["store", "push", bucket, "--results", str(other)]) == 1
    assert "is there with other contents, which are left; this one is a whole record" in capsys.readouterr().err
    main(["store", "pull", bucket, "--results", str(tmp_path / "third")])
    assert _files(tmp_path / "third")["nvidia-h200/records/20260101T000000Z-x/softmax.jsonl.gz"] == whole
    damaged = tmp_path / "third" / good.relative_to(here)
    damaged.write_bytes(whole[:50])
    assert main(["store", "pull", bucket, "--results", str(tmp_path / "third")]) == 0
    assert damaged.read_bytes() == whole, "a damaged copy is mended by the whole one"


def test_asv_results_of_one_commit_are_merged(bucket: str, tmp_path: Path) -> None:
    """Of each benchmark what was measured last, whoever pushes first."""
    row = [[], None, None]
    early, late = 1_000_000, 2_000_000
    one, other = tmp_path / "one", tmp_path / "other"
    make.asv(one, {"time_a": [[1.0], *row[:2], late], "time_b": [[1.0], *row[:2], early], "time_c": [[1.0], *row]})
    make.asv(other, {"time_a": [[2.0], *row[:2], early], "time_b": [[float("nan")], *row[:2], late]})
    for results in (one, other):
        assert main(["store", "push", bucket, "--results", str(results)]) == 0
    for results in (one, other):
        assert main(["store", "pull", bucket, "--results", str(results)]) == 0
        rows = open_store(results).snapshot.measurements.to_dicts()
        found = {row["operator"]: row["value"] for row in rows}
        assert found == {"time_a": 1.0, "time_b": None, "time_c": 1.0}


def _one_line(typed: list[str], capsys) -> str:
    capsys.readouterr()
    assert main(typed) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and SECRET not in err and "tester" not in err, err
    return err


@pytest.mark.parametrize("typed", [["store", "verify", "--results"], ["store", "push"]])
def test_what_cannot_be_reached_is_one_line_without_secrets(
    bucket: str, tmp_path: Path, typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    _record(tmp_path / "results", 1)
    monkeypatch.setattr("dashboard.store_command._own_folder", lambda _: tmp_path / "results")
    said = _one_line([*typed, "s3://there-is-no-such-bucket/x"], capsys)
    assert "s3://there-is-no-such-bucket/x: no such bucket" in said
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        assert "the server does not answer" in _one_line([*typed, bucket], capsys)
    said = _one_line([*typed, f"s3://tester:{SECRET}@bucket/x"], capsys)
    assert "credentials do not belong into a URL" in said and "s3://***@bucket/x" in said


def test_wrong_credentials_and_none(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """moto asks for credentials only when it is told to; S3 does always."""
    with s3_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        _record(tmp_path / "results", 1)
        for typed in (["store", "verify", "--results", bucket], ["store", "push", bucket, "--results", "results"]):
            assert f"{bucket}: access is refused" in _one_line(typed, capsys)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        assert f"{bucket}: access is refused" in _one_line(["store", "verify", "--results", bucket], capsys)


def test_an_empty_prefix_is_no_results(bucket: str, capsys) -> None:
    assert "no records under" in _one_line(["store", "verify", "--results", bucket], capsys)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("GROUNDSPEED_CACHE", str(tmp_path))
    said = _one_line(["store", "verify", "--results", "gs://bucket/x"], capsys)
    assert "gs://bucket/x: needs a package that is not installed" in said
    said = _one_line(["store", "verify", "--results", "gopher://x/y"], capsys)
    assert "gopher://x/y: " in said


def test_what_writes_results_says_where_they_go(tmp_path: Path, capsys) -> None:
    for typed in (["import", "x.json"], ["calibrate"], ["run"]):
        said = _one_line([*typed, "--results", "s3://bucket/x"], capsys)
        assert "groundspeed store push s3://bucket/x" in said


@pytest.mark.parametrize("command", [["store", "pull", "{}"], ["table", "--results", "{}"]])
def test_a_server_that_is_down_is_not_one_without_results(command, tmp_path: Path, monkeypatch, capsys) -> None:
    """A walk of fsspec's leaves out what it cannot list, the root too, so that a pull of nothing was done."""
    pytest.importorskip("aiohttp", reason="http:// needs aiohttp")
    monkeypatch.setenv("GROUNDSPEED_CACHE", str(tmp_path / "cache"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{free.getsockname()[1]}/results"
        assert main([part.format(place) for part in command]) == 2
    assert "the server does not answer" in capsys.readouterr().err


def test_memory_and_a_mounted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Any of fsspec's file systems, and a folder elsewhere."""
    monkeypatch.setenv("GROUNDSPEED_CACHE", str(tmp_path / "cache"))
    here = tmp_path / "here"
    _record(here, 1)
    for place in (f"memory://{tmp_path.name}/x", str(tmp_path / "share"), f"file://{tmp_path}/another share"):
        assert main(["store", "push", place, "--results", str(here)]) == 0
        assert main(["store", "push", place, "--results", str(here)]) == 0
        assert "0 files added, 1 there already" in capsys.readouterr().out
        assert main(["store", "verify", "--results", place]) == 0
    assert _files(tmp_path / "another share") == _files(here)
    assert main(["store", "push", str(here), "--results", str(here)]) == 2


def test_two_processes_that_push_to_one_folder(tmp_path: Path) -> None:
    share = tmp_path / "share"
    pushing: list[subprocess.Popen[str]] = []
    for number in range(1, 4):
        _record(tmp_path / str(number), number)
        _record(tmp_path / str(number), 9)
        pushing.append(groundspeed(tmp_path, "store", "push", str(share), "--results", str(tmp_path / str(number))))
    assert [process.wait(60) for process in pushing] == [0, 0, 0]
    assert len(find_records(share)) == 4 and not [path for path in share.rglob(".*") if path.name.startswith(".soft")]
