"""Run the profiled process under one of the profilers, and read what it saw."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed.errors import UserError
from groundspeed.measure.process import worker_environment
from groundspeed.profiling import ncu, nsys
from groundspeed.profiling.kernels import Launch
from groundspeed.profiling.protocol import Answer, Ask
from groundspeed.profiling.trace import read_trace

TOOLS = ("ncu", "nsys", "torch")
CALLS = {"ncu": 3, "nsys": 10, "torch": 10}
SECONDS = 600.0  # for one process: preparing may tune, and ncu runs each kernel a dozen times

_PLACES = {"ncu": "/usr/local/cuda/bin/ncu", "nsys": "/usr/local/cuda/bin/nsys"}


class Refused(Exception):
    """A profiler that is not there or not allowed to look: why, and what to do about it."""


@dataclass(frozen=True)
class Seen:
    """What one profiler saw. ``tool`` with its version; ``calls`` calls were looked at."""

    tool: str
    version: str
    calls: int
    answer: Answer
    launches: tuple[Launch, ...]


def profile(ask: Ask, tool: str) -> Seen:
    """Profile with the tool named. Raises Refused when it cannot, UserError when the implementation cannot run."""
    run: Callable[[Ask, Path], Seen] = {"ncu": _with_ncu, "nsys": _with_nsys, "torch": _with_torch}[tool]
    with tempfile.TemporaryDirectory(prefix="groundspeed-profile-") as folder:
        return run(msgspec.structs.replace(ask, calls=CALLS[tool]), Path(folder))


def find_tool(name: str) -> Path:
    """The ncu or nsys on the PATH or of the CUDA toolkit. Raises Refused saying what to install."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    for candidate in (name, *([f"{home}/bin/{name}"] if home else []), _PLACES[name]):
        found = shutil.which(candidate)
        if found:
            return Path(found)
    package = {"ncu": "Nsight Compute (NVIDIA's package cuda-nsight-compute-13-0)", "nsys": "Nsight Systems"}[name]
    raise Refused(f"{name} is not on the PATH nor under CUDA_HOME: install {package}")


def _with_torch(ask: Ask, folder: Path) -> Seen:
    trace = folder / "trace.json"
    ask = msgspec.structs.replace(ask, trace=str(trace))
    answer = _answered(ask, _ran(ask, folder, []))
    version = answer.environment.torch if answer.environment else ""
    return Seen("torch", version, ask.calls, answer, tuple(read_trace(trace, ask.device)))


def _with_ncu(ask: Ask, folder: Path) -> Seen:
    _need_gpu("ncu", ask.device)
    tool = find_tool("ncu")
    table = folder / "ncu.csv"
    metrics: Sequence[str] = tuple(ncu.METRICS.values())
    process = _ran(ask, folder, ncu.ncu_command(tool, table, metrics, ()), table)
    launches = ncu.parse_csv(_text(table))
    missing = ncu.unknown_metrics(process.said, metrics)
    if missing and not launches:  # an ncu that lacks some of them: the rest is worth having
        metrics = [name for name in metrics if name not in missing]
        table.unlink(missing_ok=True)
        process = _ran(ask, folder, ncu.ncu_command(tool, table, metrics, ()), table)
        launches = ncu.parse_csv(_text(table))
    if process.answer is None and "==ERROR==" in process.said:
        raise Refused(ncu.refusal(process.said))
    answer = _answered(ask, process)
    if not launches:
        raise Refused(ncu.refusal(process.said))
    return Seen("ncu", _version(tool), ask.calls, answer, tuple(launches))


def _with_nsys(ask: Ask, folder: Path) -> Seen:
    _need_gpu("nsys", ask.device)
    tool = find_tool("nsys")
    report = folder / "report.nsys-rep"
    process = _ran(ask, folder, nsys.record_command(tool, report, ()))
    answer = _answered(ask, process)
    done, _ = _finished(nsys.trace_command(tool, report), folder, {})
    launches = nsys.parse_trace(done)
    if not launches:
        told = [line for line in f"{process.said}\n{done}".splitlines() if "rror" in line or "FATAL" in line]
        raise Refused(f"nsys left no trace of the GPU: {told[-1].strip() if told else 'its report is empty'}")
    return Seen("nsys", _version(tool), ask.calls, answer, tuple(launches))


def _need_gpu(tool: str, device: str) -> None:
    if device != "cuda":
        raise Refused(f"{tool} profiles NVIDIA GPUs, and this runs on the CPU")


@dataclass(frozen=True)
class _Process:
    """How the profiled process ended: its answer if it gave one, what it and the profiler printed, exit status."""

    answer: Answer | None
    said: str
    status: int


def _ran(ask: Ask, folder: Path, prefix: Sequence[str], log: Path | None = None) -> _Process:
    """Run it behind ``prefix``; ``log`` is where the profiler writes what it does not print."""
    question, reply = folder / "ask.json", folder / "answer.json"
    reply.unlink(missing_ok=True)
    question.write_bytes(msgspec.json.encode(ask))
    program = [sys.executable, "-m", "groundspeed.profiling.child", str(question), str(reply)]
    printed, status = _finished([*prefix, *program], folder, ask.variables)
    answer = msgspec.json.decode(reply.read_bytes(), type=Answer) if reply.exists() else None
    return _Process(answer, printed + (_text(log) if log else ""), status)


def _answered(ask: Ask, process: _Process) -> Answer:
    """Its answer. Raises UserError when it gave none, and when the implementation declined."""
    name = f"{ask.operator}/{ask.implementation}"
    if process.answer is None:
        spoken = (line.strip() for line in reversed(process.said.splitlines()) if line.strip())
        last = next(spoken, "it printed nothing")
        raise UserError(f"{name}: the profiled process {_ended(process.status)}: {last[:300]}")
    if process.answer.refused:
        raise UserError(f"{name} cannot be profiled here: {process.answer.refused}")
    return process.answer


def _ended(status: int) -> str:
    return f"died of {signal.Signals(-status).name}" if status < 0 else "ended early"


def _finished(command: Sequence[str], folder: Path, variables: dict[str, str]) -> tuple[str, int]:
    """What a command printed, and its exit status. It is ended with all that it started when it takes too long."""
    output = folder / "output.txt"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=worker_environment(variables),
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise UserError(f"no end after {SECONDS:.0f} s: {' '.join(command[:2])} …") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return output.read_text(encoding="utf-8", errors="replace"), status


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _version(tool: Path) -> str:
    said = subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"\d+\.\d+\.\d+(?:\.\d+)?", said)
    return match.group() if match else ""
