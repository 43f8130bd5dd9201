"""Cores are those that the process may use."""

import os
import subprocess
import sys

import pytest

from groundspeed.cores import usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no processes")
def test_a_process_that_is_pinned_to_one_core_has_one():
    ask = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from groundspeed.cores import usable_cores"
    )
    told = subprocess.run(
        [sys.executable, "-c", f"{ask}; print(usable_cores())"], capture_output=True, text=True, check=True
    )
    assert told.stdout == "1\n"
    assert usable_cores() >= 1


def test_where_nothing_is_pinned_all_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert usable_cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
