"""NVBench on the probes, through its Python package ``cuda.bench``, in the probe's process.

Cold, as it measures by itself: behind a blocking kernel, the L2 emptied by a memset of its size, until its noise is
below half a per cent. Its limits are lower than its defaults (0.1 s at least, 2 s at most for each probe, for 0.5 and
15), or it would take longer than all else together.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from groundspeed.calibrate.probes import Run
from groundspeed.calibrate.schema import Missing, Reading

METHOD = "nvbench"
_LEAST, _MOST = 0.1, 2.0
_WARM_CALLS = 3
_MEDIAN, _MEAN = "nv/cold/time/gpu/median", "nv/cold/time/gpu/mean"
_DEVIATION, _COUNT = "nv/cold/time/gpu/stdev/relative", "nv/cold/sample_size"


def measure(runs: Mapping[str, Run], process: int) -> Iterator[Reading | Missing]:
    """A reading of each probe, or why NVBench gave none."""
    import torch
    from cuda import bench

    seconds: dict[str, float] = {}
    for name, run in runs.items():
        registered = bench.register(_benchmark(name, run, seconds))
        registered.set_name(name)
        registered.set_criterion_param_float64("min-time", _LEAST)
        registered.set_timeout(_MOST)
    with tempfile.TemporaryDirectory(prefix="groundspeed-nvbench-") as folder:
        path = Path(folder) / "found.json"
        # All at once: it keeps its benchmarks in one list, and runs whatever is in it.
        bench.run_all_benchmarks(["nvbench", "--json", str(path), "--devices", str(torch.cuda.current_device())])
        found = json.loads(path.read_text(encoding="utf-8"))
    yield from parse(found["benchmarks"], seconds, process)


def parse(
    benchmarks: Iterable[dict[str, Any]], seconds: Mapping[str, float], process: int
) -> Iterator[Reading | Missing]:
    """From the ``benchmarks`` of NVBench's JSON: one state each, whose summaries have tags."""
    for benchmark in benchmarks:
        name, state = benchmark["name"], benchmark["states"][0]
        values = {summary["tag"]: _value(summary) for summary in state.get("summaries") or []}
        time = values.get(_MEDIAN) or values.get(_MEAN)
        if not time or state.get("is_skipped"):
            yield Missing(METHOD, state.get("skip_reason") or "gave no cold GPU time", name, process)
            continue
        count = int(values.get(_COUNT) or 0)
        yield Reading(METHOD, name, process, time * 1e9, count, seconds.get(name, 0.0), values.get(_DEVIATION))


def _value(summary: dict[str, Any]) -> float | None:
    """A summary's number: NVBench writes it as a text, and a null for what is not finite."""
    for part in summary.get("data", []):
        if part.get("name") == "value" and part.get("type") in ("float64", "int64") and part.get("value") is not None:
            value = float(part["value"])
            return value if math.isfinite(value) else None
    return None


def _benchmark(name: str, run: Run, seconds: dict[str, float]) -> Callable[[Any], None]:
    import torch

    def benchmark(state: Any) -> None:
        def call(launch: Any) -> None:
            with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
                run()

        # An allocation behind its blocking kernel would wait for ever: what the stream needs is had before.
        with torch.cuda.stream(torch.cuda.ExternalStream(state.get_stream().addressof())):
            for _ in range(_WARM_CALLS):
                run()
        torch.cuda.synchronize()
        start = perf_counter()
        state.exec(call, batched=False)
        seconds[name] = perf_counter() - start

    benchmark.__name__ = name
    return benchmark
