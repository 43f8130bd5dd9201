"""Stands in for session.measure_operator in a scratch project: records what the implementation files claim.

An implementation file says ``# claims: 1500`` (nanoseconds) or ``# claims: failed`` or ``# claims: skipped``.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from groundspeed.measure.supervisor import Progress
from groundspeed.operator import Case
from groundspeed.records import (
    Accuracy,
    Environment,
    Footer,
    Header,
    Measurement,
    Record,
    record_path,
    write_record,
)
from groundspeed.session import Run
from groundspeed.tree import Implementation


def measure_operator(
    run: Run, operator: str, progress: Callable[[Progress], None], **where_and_whom_to_tell: object
) -> Path:
    progress(Progress(operator, "measure", 0, 1, "torch_eager", 0, 1))
    with (run.results.parent / "sweeps.log").open("a") as log:
        log.write(f"{run.commit.hash} {operator}\n")
    if operator in os.environ.get("FAKE_BREAKS", ""):
        raise RuntimeError("the fake broke")
    spec = run.tree.spec(operator)
    implementations = [one for one in run.tree.implementations(operator) if run.selection.includes(one)]
    measurements = [_claim(one, case) for case in run.selection.cases(spec) for one in implementations]
    header = Header(
        run_id=run.run_id,
        operator=operator,
        machine=run.machine,
        started=datetime.datetime.now(datetime.UTC).isoformat(),
        environment=Environment(
            device=run.device,
            device_name="fake",
            python=sys.version.split()[0],
            os="Linux",
            torch=importlib.metadata.version("torch"),
        ),
        commit=run.commit.hash,
        tier=run.selection.tier,
        ideas={one.name: one.idea for one in implementations},
        matrix=run.matrix,
    )
    path = record_path(run.results, run.machine, run.run_id, operator)
    write_record(path, Record(header, tuple(measurements), Footer(len(measurements))))
    return path


def _claim(implementation: Implementation, case: Case) -> Measurement:
    found = re.search(r"claims: (\S+)", implementation.files[0].read_text())
    claim = found.group(1) if found else "1000"
    about = {"implementation": implementation.name, "dtype": case.dtype, "shape": case.dims}
    if claim == "failed":
        return Measurement(**about, status="failed", failure="incorrect", reason="expected 1, got 2")
    if claim == "skipped":
        return Measurement(**about, status="skipped", reason="no such back end here")
    # The claim, larger for larger shapes, so that a value filed under another combination shows.
    nanoseconds = float(claim) * sum(int(value) for value in case.dims.values())
    return Measurement(
        **about,
        status="ok",
        samples={
            "device_cold": [nanoseconds + round_ for round_ in range(11)],
            "device_hot": [nanoseconds / 2 + round_ for round_ in range(11)],
            "call": [nanoseconds * 2 + round_ for round_ in range(11)],
        },
        prepare_ns=3e6,
        first_run_ns=1e6,
        peak_memory_bytes=4096,
        accuracy=Accuracy(max_abs=1e-3, max_rel=1e-3, norm=1e-4, tolerance_used=0.1),
    )
