"""What is written under a name that somebody typed: the old file or the new one, never a part of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest

from groundspeed.whole_files import replace_output


@pytest.fixture
def full_disk(monkeypatch):
    """No file can be written, after it was opened."""

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_disk_that_is_full_leaves_the_old_file_and_is_told_with_the_name_that_was_typed(tmp_path, full_disk):
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left") as told:
        replace_output(path, b"new")
    assert told.value.filename == str(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["report.json"]


def test_a_link_and_a_mode_stay(tmp_path):
    path, link = tmp_path / "report.json", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o755)
    link.symlink_to(path.name)
    replace_output(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=replace_output, args=(path, b"new"))
    writer.start()
    assert path.read_bytes() == b"new" and stat.S_ISFIFO(path.stat().st_mode)
    writer.join()


def test_so_is_standard_output():
    program = "from pathlib import Path; from groundspeed.whole_files import replace_output as w; "
    program += "w(Path('/dev/stdout'), b'new')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env={**os.environ})
    assert done.stdout == b"new" and not done.stderr
