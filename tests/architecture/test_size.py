"""Small files, one idea each."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

MOST_LINES = 400
FOLDERS = ("groundspeed", "dashboard", "benchmarks", "impls", "tests", "tools")
SUFFIXES = {".py", ".cu", ".cuh", ".js", ".css", ".sh"}


def test_no_file_is_longer_than_400_lines():
    long = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and not path.name.endswith(".min.js"):
                lines = len(path.read_text(encoding="utf-8").splitlines())
                if lines > MOST_LINES:
                    long[str(path.relative_to(ROOT))] = lines
    assert not long


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folder_is_looked_at(folder):
    assert any(path.suffix in SUFFIXES for path in (ROOT / folder).rglob("*"))
