"""One calibration, whole: processes, then Nsight Compute, then what is kept of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from groundspeed import git
from groundspeed.calibrate import ncu, nvbench, peers
from groundspeed.calibrate.methods import METHODS, why_not_here
from groundspeed.calibrate.probes import Probe
from groundspeed.calibrate.processes import Collected, run_processes, start_children
from groundspeed.calibrate.protocol import Task
from groundspeed.calibrate.schema import Calibration, Missing, Probed, calibration_path, write_calibration
from groundspeed.calibrate.summary import noise_lines
from groundspeed.errors import UserError
from groundspeed.gate.floors import noise_folder, write_noise
from groundspeed.measure.process import worker_environment

ROUNDS = 30  # of each side, as many as the gate takes
_PEER_MODULES = {
    "do_bench": ("triton", "triton"),
    "torch_benchmark": ("torch", "torch"),
    nvbench.METHOD: ("cuda.bench", "cuda-bench"),
}


@dataclass(frozen=True)
class Request:
    """What to calibrate. The first ``beside`` of the processes time by other methods too.

    variables
        What the processes have in their environment besides this one's: which GPU they see.
    """

    root: Path
    machine: str
    device: str
    probes: tuple[Probe, ...]
    processes: int = 12
    beside: int = 4
    rounds: int = ROUNDS
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """Whom to tell of what: each process before it measures, and Nsight Compute."""

    process: Callable[[int], None] = lambda number: None
    ncu: Callable[[], None] = lambda: None


def calibrate(request: Request, told: Told) -> Calibration:
    """Run it. Raises UserError when no process could measure anything."""
    began, started = monotonic(), datetime.now(UTC)
    absent = absent_peers(request.device)
    names = tuple(probe.name for probe in request.probes)
    usable = tuple(method for method in _PEER_MODULES if method not in absent)
    tasks = [
        Task(request.device, number, names, usable if beside else (), request.rounds, beside)
        for number, beside in enumerate(number < request.beside for number in range(request.processes))
    ]
    all_told = Collected()
    for one in run_processes(tasks, start_children(request.variables), told.process):
        all_told.add(one)
    if all_told.environment is None or not all_told.readings:
        why = next((one.reason for one in all_told.missing), "no process began")
        raise UserError(f"nothing was measured on {request.machine}: {why}")
    all_told.missing += [Missing(method, reason) for method, reason in absent.items()]
    if request.device == "cuda" and request.beside:
        told.ncu()
        for found in ncu.measure(names, worker_environment(request.variables)):
            (all_told.missing if isinstance(found, Missing) else all_told.readings).append(found)  # type: ignore[arg-type]
    commit = git.head(request.root)
    return Calibration(
        run_id=f"{started:%Y%m%dT%H%M%SZ}-{commit.hash[:8] or 'nocommit'}-{secrets.token_hex(2)}",
        machine=request.machine,
        started=started.isoformat(timespec="seconds"),
        environment=all_told.environment,
        processes=request.processes,
        beside=min(request.beside, request.processes),
        rounds=request.rounds,
        seconds=round(monotonic() - began, 1),
        timer=all_told.timer,
        probes=[Probed(probe.name, probe.operation, probe.dtype, dict(probe.shape)) for probe in request.probes],
        readings=all_told.readings,
        ratios=all_told.ratios,
        commit=commit.hash,
        dirty=commit.dirty,
        costs=all_told.costs,
        ceilings=all_told.ceilings,
        clocks=all_told.clocks,
        clocked=all_told.clocked,
        missing=list(dict.fromkeys(all_told.missing)),
        phases={phase: round(seconds, 2) for phase, seconds in all_told.phases.items()},
    )


def absent_peers(device: str) -> dict[str, str]:
    """Other projects' methods that cannot be run here, with the reason."""
    elsewhere = why_not_here(device)
    reasons: dict[str, str] = {}
    for method in METHODS:
        if not method.peer:
            continue
        missing = peers.not_installed(*_PEER_MODULES[method.key]) if method.key in _PEER_MODULES else None
        reason = elsewhere.get(method.key) or missing
        if reason:
            reasons[method.key] = reason
    return reasons


def keep(results: Path, calibration: Calibration) -> Mapping[str, Path]:
    """Write the calibration and its noise lines. Raises UserError when they cannot be written."""
    path = calibration_path(results, calibration.machine, calibration.run_id)
    try:
        write_calibration(path, calibration)
        noise = write_noise(noise_folder(results, calibration.machine), calibration.run_id, noise_lines(calibration))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}; pass --results DIR") from error
    return {"calibration": path, "noise": noise}
