"""Record files: whole or absent, never rewritten, and a damaged one says so."""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import random
import resource
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from groundspeed.records import (
    QUANTITIES,
    SCHEMA,
    Accuracy,
    Ceilings,
    Clocks,
    Environment,
    FirstCall,
    Footer,
    Header,
    KernelResources,
    Measurement,
    Record,
    RecordError,
    age,
    find_records,
    read_record,
    read_records,
    record_path,
    write_record,
)

ENVIRONMENT = Environment("cpu", "A CPU", "3.11.2", "Linux 6")
HEADER = Header("20260101T000000Z-0-0", "softmax", "cpu-a", "2026-01-01T00:00:00+00:00", ENVIRONMENT)
ROW = Measurement("torch_eager", "float32", {"M": 4, "N": 8}, "ok", samples={"device_cold": [1.0, 2.5]})
RECORD = Record(HEADER, (ROW,), Footer(1, {"time": 0.5}))

text = st.text(max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e18)
whole = st.integers(0, 2**62)
measurements = st.builds(
    Measurement,
    implementation=text,
    dtype=text,
    shape=st.dictionaries(text, whole | text, max_size=3),
    status=st.sampled_from(["ok", "skipped", "failed"]),
    failure=st.none() | st.sampled_from(["build", "incorrect", "impossible", "crash", "oom", "timeout", "error"]),
    reason=text,
    unstable=text,
    samples=st.dictionaries(st.sampled_from(QUANTITIES), st.lists(finite, max_size=3)),
    kernels=st.lists(text, max_size=2),
    prepare_ns=st.none() | finite,
    first_call_cold=st.none() | st.builds(FirstCall, finite, finite, finite),
    first_call_warm=st.none() | st.builds(FirstCall, finite, finite, finite),
    peak_memory_bytes=st.none() | whole,
    prepared_memory_bytes=whole,
    energy_nj=st.none() | finite,
    accuracy=st.none() | st.builds(Accuracy, finite, finite, finite, finite),
    resources=st.lists(st.builds(KernelResources, text, whole, whole, whole), max_size=2),
    clocks=st.none() | st.builds(Clocks, st.tuples(whole, whole), whole, finite, whole, st.tuples(text)),
    notes=st.lists(text, max_size=2),
)
records = st.builds(
    lambda header, rows, seconds: Record(header, tuple(rows), Footer(len(rows), seconds)),
    st.builds(
        Header,
        run_id=text,
        operator=text,
        machine=text,
        started=text,
        environment=st.just(ENVIRONMENT),
        dirty=st.booleans(),
        ladders=st.dictionaries(text, st.lists(text, max_size=2), max_size=2),
        missing=st.dictionaries(text, text, max_size=2),
        ceilings=st.none()
        | st.builds(Ceilings, finite, finite, finite, finite, st.dictionaries(text, finite, max_size=2)),
    ),
    st.lists(measurements, max_size=4),
    st.dictionaries(text, finite, max_size=2),
)


@settings(deadline=None, max_examples=60)
@given(records)
def test_what_is_written_is_read(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("r") / "a" / "softmax.jsonl.gz"
    write_record(path, record)
    assert read_record(path) == record
    assert os.listdir(path.parent) == [path.name]


def test_the_same_record_is_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_record(tmp_path / f"{name}.jsonl.gz", RECORD)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_a_record_is_never_rewritten(tmp_path):
    path = tmp_path / "softmax.jsonl.gz"
    write_record(path, RECORD)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="never rewritten"):
        write_record(path, msgspec.structs.replace(RECORD, measurements=(), footer=Footer(0)))
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_could_not_be_read_back_is_not_written(tmp_path, value):
    row = msgspec.structs.replace(ROW, accuracy=Accuracy(0.0, 0.0, value, 0.0))
    with pytest.raises(ValueError, match=r"torch_eager float32 M=4,N=8: not a finite number: .*accuracy\.norm"):
        write_record(tmp_path / "r" / "a.jsonl.gz", msgspec.structs.replace(RECORD, measurements=(row,)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("moment", ["", "yesterday", "0001-01-01T00:00:00+14:00", "é", "12"])
def test_what_is_no_time_is_older_than_any(moment):
    odd = msgspec.structs.replace(HEADER, started=moment, run_id="z")
    assert age(odd) == (0.0, "z") or moment.startswith("0001")
    assert age(odd) < age(HEADER)
    assert age(msgspec.structs.replace(HEADER, commit_time=moment, run_id="y"))[0] <= age(HEADER)[0]


# a disk that fills up


def refuse_after(monkeypatch, calls: int, name: str) -> None:
    real, seen = getattr(os, name), iter(range(100))

    def refuse(*arguments, **keywords):
        if next(seen) >= calls:
            raise OSError(28, "No space left on device")
        return real(*arguments, **keywords)

    monkeypatch.setattr(os, name, refuse)


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, name):
    refuse_after(monkeypatch, 0, name)
    with pytest.raises(OSError, match="No space left"):
        write_record(tmp_path / "softmax.jsonl.gz", RECORD)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []
    write_record(tmp_path / "softmax.jsonl.gz", RECORD)
    assert read_record(tmp_path / "softmax.jsonl.gz") == RECORD


def long_record() -> Record:
    """Some 100 KiB even when compressed: the samples have no pattern."""
    digits = random.Random(0)
    many = tuple(
        msgspec.structs.replace(ROW, samples={"call": [digits.random() for _ in range(1000)]}) for _ in range(12)
    )
    return Record(HEADER, many, Footer(len(many)))


def write_limited(path: Path, most: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    write_record(path, long_record())


def test_a_file_that_may_not_grow_leaves_nothing(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.core.test_records import write_limited\n"
        "write_limited(Path(sys.argv[1]), 4096)\n"
    )
    path = tmp_path / "softmax.jsonl.gz"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=Path.cwd())
    assert "File too large" in done.stderr.splitlines()[-1], done.stderr
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 16 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_nothing_and_the_next_one_is_written(small_disk):
    path = small_disk / "softmax.jsonl.gz"
    with pytest.raises(OSError, match="No space left on device"):
        write_record(path, long_record())
    assert os.listdir(small_disk) == []
    write_record(path, RECORD)
    assert read_record(path) == RECORD


# damage


def raw(path: Path, *lines: bytes) -> Path:
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    return path


def encoded(part: object) -> bytes:
    return msgspec.json.encode(part)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_truncated_or_changed_file_is_an_error_that_names_it(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl.gz"
    path.unlink(missing_ok=True)
    write_record(path, RECORD)
    content = bytearray(path.read_bytes())
    whole = gzip.decompress(content)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        # Not the header of gzip, whose time stamp and flags carry nothing of ours.
        content[data.draw(st.integers(10, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with contextlib.suppress(OSError, EOFError, zlib.error):
        assume(gzip.decompress(content) != whole)  # nor do the bits that fill up the last byte before the checksum
    with pytest.raises(RecordError) as caught:
        read_record(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=4))
def test_any_lines_at_all_are_a_record_or_an_error(tmp_path_factory, lines):
    path = raw(tmp_path_factory.getbasetemp() / "foreign.jsonl.gz", *lines)
    with pytest.raises(RecordError, match=r"foreign\.jsonl\.gz"):
        read_record(path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), "has 0 lines"),
        ((encoded(HEADER),), "has 1 lines"),
        ((encoded(HEADER), encoded(ROW)), "end"),
        ((encoded(HEADER), encoded(Footer(1))), "holds 0 measurements, its footer says 1"),
        ((encoded(HEADER), encoded(ROW), encoded(ROW), encoded(Footer(1))), "holds 2 measurements, its footer says 1"),
        ((b"[]", encoded(Footer(0))), "not a record"),
        ((b"[" * 100_000, encoded(Footer(0))), "not a record"),
        ((encoded(HEADER).replace(b"softmax", b"\xff\xfe"), encoded(Footer(0))), "not a record"),
        (
            (b'{"schema":2,"new":"words"}', encoded(Footer(0))),
            "schema 2, this groundspeed reads 1: upgrade groundspeed",
        ),
        ((encoded(HEADER), encoded(ROW).replace(b'"ok"', b'"fine"'), encoded(Footer(1))), "fine"),
    ],
)
def test_every_kind_of_damage_has_its_words(tmp_path, lines, said):
    with pytest.raises(RecordError) as caught:
        read_record(raw(tmp_path / "a.jsonl.gz", *lines))
    assert said in str(caught.value) and str(tmp_path / "a.jsonl.gz") in str(caught.value)


def test_a_field_of_a_later_version_under_the_same_schema_is_no_error(tmp_path):
    header = encoded(HEADER)[:-1] + b',"weather":"fine"}'
    assert read_record(raw(tmp_path / "a.jsonl.gz", header, encoded(Footer(0)))).header == HEADER
    assert HEADER.schema == SCHEMA


def test_files_that_cannot_be_read_do_not_hide_the_others(tmp_path):
    paths = [record_path(tmp_path, "cpu-a", run, "softmax") for run in ("2", "1", "3")]
    for path in paths[:2]:
        write_record(path, RECORD)
    paths[2].parent.mkdir(parents=True)
    paths[2].write_bytes(b"\x1f\x8bno")
    (paths[0].parent / ".softmax.jsonl.gz.k1x2").write_bytes(b"left by a kill")
    found = find_records(tmp_path)
    assert found == [paths[1], paths[0], paths[2]]
    assert [type(one) for one in read_records(found)] == [Record, Record, RecordError]
