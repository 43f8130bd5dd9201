"""Cores are those that the process may use."""

import os
import subprocess
import sys

import pytest

from groundspeed.cores import cpu_threads, usable_cores


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


@pytest.mark.parametrize(
    ("asked", "threads"), [("3", 3), ("4,2", 4), (" 2 ", 2), ("", 12), ("0", 12), ("-1", 12), ("all", 12), ("²", 12)]
)
def test_threads_of_an_operator_are_those_asked_for_or_one_a_usable_core(asked, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(12)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert cpu_threads() == threads
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert cpu_threads() == 12
