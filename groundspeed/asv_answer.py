"""Answers asv's ``run`` of one parameter combination inside asv's own process.

A replay runs no code of an implementation, so it needs no process of its own to be safe or cold; and there are
thousands in a run, most of them for cases that a tier leaves out. Measured (12 × 3 × 6 × 6 combinations): see
docs/asv.md.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import pickle
from pathlib import Path
from typing import NamedTuple

from asv_runner.discovery import get_benchmark_from_name

from groundspeed.asv_suite import WarmBenchmark
from groundspeed.asv_sweep import Swept


class RunAction(NamedTuple):
    """The arguments asv gives its runner script after ``run``, in asv's order."""

    suite: str
    benchmark: str
    parameters: str
    profile: str
    result: str


def answer(action: RunAction, cache_folder: Path) -> str | None:
    """Write the combination's result where asv reads it and return what was printed.

    None when the benchmark is not a warm one: asv has to run that in a process.
    """
    name, _, index = action.benchmark.partition("-")
    benchmark = _benchmark(action.suite, name)
    if not isinstance(benchmark, WarmBenchmark):
        return None
    benchmark.set_param_idx(int(index))
    benchmark.set_cache(read_cache(cache_folder))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = math.nan if benchmark.do_setup() else benchmark.do_run()
    # asv made this file, empty, and deletes it: truncating it again would have ext4 write it to the disk first.
    with open(action.result, "r+", encoding="utf-8") as file:
        json.dump(value, file)
    return printed.getvalue()


def read_cache(cache_folder: Path) -> Swept | None:
    """What ``setup_cache`` left in the folder asv gave it; None when it left nothing."""
    path = cache_folder / "cache.pickle"
    if not path.exists():
        return None
    swept: Swept = pickle.loads(path.read_bytes())
    return swept


@functools.cache
def _benchmark(suite: str, name: str) -> object:
    return get_benchmark_from_name(suite, name)
