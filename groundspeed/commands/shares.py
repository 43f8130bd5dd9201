"""Measure what an unfused transformer layer's time goes to, beside the shares that the sources publish.

  groundspeed shares                core cases; on a CPU those of tier small
  groundspeed shares 'B=8,S=512,*'  the cases of a pattern, a dtype, or both
  groundspeed shares --json         operations with their time, bytes and FLOPs

By part (attention, feed-forward network, norms) it is the time of torch_eager's kernels, each operation of the layer
taken apart by itself. By kind, launch is a call's wall time less the time the device is busy; memory and compute are
the operations that are nearer to the one ceiling or the other, both measured in the same session. On a CPU it is the
processor's time of each operation, which the first line says.

Exit status: 0 done, 2 wrong use, or it could not be measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed import interrupts
from groundspeed.errors import UserError
from groundspeed.project import find_project

if TYPE_CHECKING:
    from groundspeed.operator import Case, Operator

OPERATOR = "transformer_layer"
_SECONDS = 600.0
_STDERR = 2  # where the measuring process's own words of its progress go


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", nargs="*", metavar="CASE", help="a dtype, a shape or a pattern of one, or both")
    parser.add_argument("--json", action="store_true", help="what was measured, as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    import msgspec

    from groundspeed.analysis.shares import Operation
    from groundspeed.machine import chosen_device
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.lane import default_place, hold
    from groundspeed.records import Ceilings
    from groundspeed.report.shares import share_tables
    from groundspeed.report.style import Style

    tree = find_project(arguments.project).tree()
    if OPERATOR not in tree.operators():
        raise UserError(f"this project has no operator {OPERATOR}, whose shares these are; type: groundspeed list")
    device = chosen_device()
    cases = _cases(tree.spec(OPERATOR), arguments.case, device)
    ask = {"tree": str(tree.root), "device": device, "cases": [(one.dtype, one.shape) for one in cases]}
    place = default_place(device)
    with hold(place, Patience(advice="type it again when that has ended")):
        told = _measured(msgspec.json.encode(ask), place.variables)
    if arguments.json:
        print(told.decode())
        return 0
    answer = msgspec.json.decode(told)
    ceilings = msgspec.convert(answer["ceilings"], Ceilings)
    what = "CUPTI's spans of each operation's kernels" if device == "cuda" else "a CPU: time of each operation there"
    print(f"{OPERATOR}/torch_eager on {answer['device_name']} ({what})")
    style = Style.of()
    for one in answer["taken"]:
        operations = msgspec.convert(one["operations"], list[Operation])
        print("\n".join(["", *share_tables(one["dtype"], one["shape"], one["call_ns"], operations, ceilings, style)]))
    return 0


def _cases(spec: Operator, words: list[str], device: str) -> tuple[Case, ...]:
    """The cases that the words name, in the spec's order; without words those of the device's tier."""
    from groundspeed.profiling.choose import DEFAULT_TIER, choose_cases

    if not words:
        return spec.tier_cases(DEFAULT_TIER[device])
    chosen = choose_cases(OPERATOR, spec, words, device)
    return tuple(case for case in (*spec.bench_cases, *spec.check_cases) if case in chosen)


def _measured(ask: bytes, variables: dict[str, str]) -> bytes:
    """The measuring process's answer, as JSON. Raises UserError when it gave none."""
    import msgspec

    from groundspeed.measure.process import worker_environment

    with interrupts.on_sigterm(), tempfile.TemporaryDirectory(prefix="groundspeed-shares-") as folder:
        question, reply = Path(folder) / "ask.json", Path(folder) / "answer.json"
        question.write_bytes(ask)
        command = [sys.executable, "-m", "groundspeed.measure.shares", str(question), str(reply)]
        try:
            done = subprocess.run(
                command,
                env=worker_environment(variables),
                stdout=_STDERR,
                stderr=subprocess.PIPE,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise UserError(f"{OPERATOR}: shares were not measured within {_SECONDS:.0f} s") from late
        if not reply.exists():
            last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it printed nothing")
            raise UserError(f"{OPERATOR}: the measuring process ended early: {last.strip()[:300]}")
        told = reply.read_bytes()
    refused = msgspec.json.decode(told)["refused"]
    if refused:
        raise UserError(refused)
    return told
