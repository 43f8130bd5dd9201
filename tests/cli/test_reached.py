"""What implementations reach, at the end of their headers: generated, replaced, and true to the committed records."""

from __future__ import annotations

import ast
import subprocess
import sys

import msgspec
import pytest

from groundspeed.records import Ceilings, Environment, Footer, Header, Measurement, Record
from groundspeed.report.reached import sentences, with_sentence, written
from groundspeed.report.standing import standing
from tests.paths import ROOT

SAID = "Reached on nvidia-h200 at 0123abcd: 10.0 µs for float32 N=1024."
NEWER = "Reached on nvidia-h200 at fedc9876: 9.00 µs for float32 N=1024."


def measured(implementation, n, nanoseconds, **more):
    return Measurement(
        implementation=implementation,
        dtype="float32",
        shape={"N": n},
        status="ok",
        samples={"device_cold": [nanoseconds] * 20},
        bytes_read=4 * n,
        bytes_written=4 * n,
        **more,
    )


def record(*measurements):
    header = Header(
        run_id="r",
        operator="relu",
        machine="nvidia-h200",
        started="2026-11-30T00:00:00+00:00",
        environment=Environment(device="cuda", device_name="NVIDIA H200", python="3.12", os="Linux"),
        commit="0123abcd" * 5,
        ceilings=Ceilings(copy=4e12, read=4e12, write=4e12),
    )
    return Record(header, measurements, Footer(len(measurements)))


def test_the_largest_case_speaks_with_its_rate_ceiling_and_speedup():
    rows = (
        measured("torch_eager", 1 << 20, 4000.0),
        measured("torch_eager", 1 << 24, 60000.0),
        measured("cuda_vec4", 1 << 20, 1000.0),
        measured("cuda_vec4", 1 << 24, 40000.0, unstable="wide"),
    )
    assert sentences(standing([record(*rows)])) == {
        "torch_eager": "Reached on nvidia-h200 at 0123abcd: 60.0 µs for float32 N=16777216, 2.24 TB/s, 56 % of the "
        "memory ceiling.",
        "cuda_vec4": "Reached on nvidia-h200 at 0123abcd: 40.0 µs for float32 N=16777216, 3.36 TB/s, 84 % of the "
        "memory ceiling, 1.50 times as fast as torch_eager (unstable).",
    }


def test_what_has_no_time_says_nothing():
    failed = Measurement(implementation="cuda_vec4", dtype="float32", shape={"N": 4}, status="failed", reason="no")
    assert sentences(standing([record(failed)])) == {}


def test_what_a_newer_run_left_out_is_said_of_the_run_that_has_it():
    older = record(measured("torch_eager", 1 << 20, 4000.0), measured("cuda_vec4", 1 << 20, 2000.0))
    newer = record(measured("torch_eager", 1 << 20, 8000.0))
    newer = msgspec.structs.replace(newer, header=msgspec.structs.replace(newer.header, commit="fedc9876" * 5))
    said = sentences(standing([newer, older]))
    assert "at fedc9876: 8.00 µs" in said["torch_eager"]
    assert "at 0123abcd: 2.00 µs" in said["cuda_vec4"] and "2.00 times as fast" in said["cuda_vec4"]


@pytest.mark.parametrize(
    "header",
    ['"""One line."""\n', '"""Idea.\n\nMemory-bound: so many bytes.\n"""\n', '"""Idea.\n\nTwo paragraphs"""\n'],
)
def test_a_docstring_gets_it_last_and_once(header):
    text = f"{header}\nimport torch\n\nX = 1\n"
    once = with_sentence(text, ".py", SAID)
    assert ast.get_docstring(ast.parse(once)).splitlines()[-1] == SAID
    assert once.endswith('"""\n\nimport torch\n\nX = 1\n')
    twice = with_sentence(once, ".py", NEWER)
    assert SAID not in twice and with_sentence(twice, ".py", SAID) == once
    assert ast.get_docstring(ast.parse(once)).splitlines()[0] == ast.get_docstring(ast.parse(text)).splitlines()[0]


def test_a_comment_gets_it_last_and_once():
    text = "// Idea.\n//\n// Memory-bound.\n#include <x>\n// not the header\n"
    once = with_sentence(text, ".cu", SAID)
    assert once == f"// Idea.\n//\n// Memory-bound.\n//\n// {SAID}\n#include <x>\n// not the header\n"
    assert with_sentence(with_sentence(once, ".cu", NEWER), ".cu", SAID) == once


def test_long_sentences_are_wrapped():
    long = SAID + " " + "word " * 40
    for suffix, text in ((".cu", "// Idea.\n"), (".py", '"""Idea."""\n')):
        after = with_sentence(text, suffix, long)
        assert max(map(len, after.splitlines())) <= 120
        assert with_sentence(after, suffix, SAID) == with_sentence(text, suffix, SAID)


@pytest.mark.parametrize(("suffix", "text"), [(".py", "X = 1\n"), (".py", "'quoted'\n"), (".cu", "int x;\n")])
def test_a_file_without_a_header_is_left_alone(suffix, text):
    assert with_sentence(text, suffix, SAID) == text


def test_a_cuda_file_speaks_before_its_companion(tmp_path):
    folder = tmp_path / "relu"
    folder.mkdir()
    (folder / "cuda_vec4.cu").write_text("// Idea.\n")
    (folder / "cuda_vec4.py").write_text('"""Companion."""\n')
    parts = standing([record(measured("cuda_vec4", 4, 10.0), measured("triton_gone", 4, 10.0))])
    found = written(tmp_path, {"relu": parts})
    assert list(found) == [folder / "cuda_vec4.cu"]


def test_the_committed_headers_say_what_the_committed_records_say():
    checked = subprocess.run(
        [sys.executable, "-m", "groundspeed", "table", "--headers", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
