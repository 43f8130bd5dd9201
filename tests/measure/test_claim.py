"""A GPU is measured on by one run at a time, on this host and of this user."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from groundspeed.errors import UserError
from groundspeed.measure import claim as module
from groundspeed.measure.claim import GpuBusy, Patience, claim, lock_folder
from groundspeed.measure.process import worker_environment

HOLD = """
import sys, time
from groundspeed.measure.claim import Patience, claim
with claim(sys.argv[1], "GPU 0", Patience()):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_LOOK", 0.05)


@pytest.fixture
def holder():
    """Another process that holds the GPU ``GPU-1``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, "GPU-1"], env=worker_environment({}), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_another_process_is_refused_at_once_and_told_who_holds_it(holder):
    began = time.monotonic()
    said = rf"^another groundspeed \(process {holder.pid}\) measures on GPU 3; to wait for it, add --wait$"
    with pytest.raises(GpuBusy, match=said), claim("GPU-1", "GPU 3", Patience(0, "to wait for it, add --wait")):
        raise AssertionError("it was held twice")
    assert time.monotonic() - began < 5


def test_another_gpu_is_free(holder):
    with claim("GPU-2", "GPU 1", Patience()):
        pass


def test_it_is_waited_for_and_had_when_the_holder_dies_however_that_ends(holder):
    told: list[str] = []

    def tell(what: str) -> None:
        told.append(what)
        if len(told) == 3:
            holder.kill()

    with claim("GPU-1", "GPU 0", Patience(60.0), tell):
        assert len(told) >= 3 and set(told) == {f"another groundspeed (process {holder.pid}) measures on GPU 0"}


def test_patience_ends_with_how_long_it_was(holder):
    said = r"measures on GPU 0, and did not become free within 0\.002 min$"
    with pytest.raises(GpuBusy, match=said), claim("GPU-1", "GPU 0", Patience(0.12)):
        raise AssertionError("it was held twice")


def test_in_one_process_too_and_after_it_was_given_back():
    for _ in range(2):
        with (
            claim("GPU-1", "GPU 0", Patience()),
            pytest.raises(GpuBusy, match=f"process {os.getpid()}"),
            claim("GPU-1", "GPU 0", Patience()),
        ):
            raise AssertionError("it was held twice")


def test_what_the_holder_starts_does_not_hold_it():
    with claim("GPU-1", "GPU 0", Patience()):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
    with claim("GPU-1", "GPU 0", Patience()):
        pass
    child.kill()
    child.wait()


def test_the_uuid_is_not_in_the_files_name_and_a_session_without_a_runtime_folder_shares_it(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/0")
    with claim("GPU-secret", "GPU 0", Patience()):
        (file,) = lock_folder().iterdir()
        assert "secret" not in file.name and file.read_text() == str(os.getpid())


def test_no_place_for_the_lock_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said = r"^GPU 0 cannot be kept from other runs: .*; set XDG_CACHE_HOME to a folder$"
    with pytest.raises(UserError, match=said), claim("GPU-1", "GPU 0", Patience()):
        raise AssertionError("it was held without a lock")
