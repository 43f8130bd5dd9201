"""Other projects' ways of timing a call in the probe's process, as they are meant to be used."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from groundspeed.calibrate.probes import Run

_SECONDS = 0.1  # of calls timed by torch.utils.benchmark for each probe


def do_bench(run: Run) -> list[float]:
    """``triton.testing.do_bench`` with its own defaults; ns of each call."""
    from triton.testing import do_bench as bench

    return [milliseconds * 1e6 for milliseconds in bench(run, return_mode="all")]


def torch_benchmark(run: Run) -> list[float]:
    """``torch.utils.benchmark``: blocks of calls back to back, each block's time over its calls; ns."""
    import torch
    from torch.utils.benchmark import Timer

    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    return [seconds * 1e9 for seconds in timer.blocked_autorange(min_run_time=_SECONDS).times]


ONE_BY_ONE: dict[str, Callable[[Run], list[float]]] = {"do_bench": do_bench, "torch_benchmark": torch_benchmark}


def not_installed(module: str, package: str) -> str | None:
    """Why a module cannot be imported, or None."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of the package that it lies in
        found = None
    return None if found else f"not installed; type: pip install {package}"
