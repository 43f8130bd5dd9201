"""The file of a calibration: whole or not there, never rewritten, and refused with its name when it is damaged."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from groundspeed.calibrate.run import keep
from groundspeed.calibrate.schema import calibration_path, newest, read_calibration, write_calibration
from groundspeed.errors import UserError
from groundspeed.gate.floors import noise_folder, read_floors
from tests.calibrate.make import calibration


def test_what_is_written_is_read_back(tmp_path):
    path = calibration_path(tmp_path, "nvidia-h200", "run")
    assert path == tmp_path / "nvidia-h200" / "calibration" / "run.json.gz"
    write_calibration(path, calibration())
    assert read_calibration(path) == calibration()
    with pytest.raises(FileExistsError):
        write_calibration(path, calibration())


def test_it_is_plain_json(tmp_path):
    write_calibration(tmp_path / "a.json.gz", calibration())
    found = json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))
    assert found["readings"][0]["method"] == "cupti" and found["machine"] == "nvidia-h200"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw[: len(raw) // 2], "no calibration"),
        (lambda raw: gzip.compress(b"[]"), "no calibration"),
        (lambda raw: gzip.compress(b'{"run_id": 3}'), "no calibration"),
        (lambda raw: gzip.compress(gzip.decompress(raw).replace(b'"run_id"', b'"schema":2,"run_id"', 1)), "schema 2"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, said):
    path = tmp_path / "a.json.gz"
    write_calibration(path, calibration())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"a\.json\.gz: {said}"):
        read_calibration(path)


def test_the_newest_is_that_of_the_last_run(tmp_path):
    assert newest(tmp_path, "m") is None
    for run_id in ("20260301T1", "20260101T1", "20260201T1"):
        write_calibration(calibration_path(tmp_path, "m", run_id), calibration())
    assert newest(tmp_path, "m").name == "20260301T1.json.gz"


def test_keeping_leaves_the_noise_where_the_gate_looks(tmp_path):
    kept = keep(tmp_path, calibration())
    assert read_calibration(kept["calibration"]) == calibration()
    assert len(read_floors(noise_folder(tmp_path, "nvidia-h200"))) == 6


def test_results_that_cannot_be_written_are_one_line(tmp_path):
    (tmp_path / "nvidia-h200").write_text("a file")
    with pytest.raises(UserError, match=r"cannot be written: .*; pass --results DIR"):
        keep(tmp_path, calibration())


def test_fields_added_later_do_not_hide_an_old_file(tmp_path):
    text = msgspec.json.encode(calibration()).replace(b'"run_id"', b'"weather":"fair","run_id"', 1)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text))
    assert read_calibration(tmp_path / "a.json.gz") == calibration()
