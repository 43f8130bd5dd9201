"""compute-sanitizer itself: where it is, how it is called, one process watched from its start to its end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec

from groundspeed.errors import UserError
from groundspeed.measure.process import worker_environment
from groundspeed.sanitizer.log import Log, parse_log
from groundspeed.sanitizer.protocol import Began, Event, Request, read_events

CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 600.0  # for one process; instrumented code is 10 to 100 times slower

_LOOK = 0.2
_FOUND = 86  # the tool's exit status for errors, told apart from those of Python and the shell
_PADDING = 4096  # illegal bytes behind every allocation: cudaMalloc puts small ones side by side
_PORTS = 64  # for each process; side by side they must not look for their targets on the same ones
_FIRST_PORT = 49152  # the tool's own default
_VARIABLES = {
    # torch's caching allocator cuts tensors out of large blocks, in which every overrun is legal.
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Watched:
    """One process under the tool: its log, and what it said of its cases.

    ended
        Why it was ended; empty where it ended by itself.
    said
        The last line that it or the tool printed.
    """

    log: Log
    events: tuple[Event, ...]
    ended: str = ""
    said: str = ""

    @property
    def last_case(self) -> str:
        return next((event.case for event in reversed(self.events) if isinstance(event, Began)), "")


def find_sanitizer() -> Path:
    """The compute-sanitizer on the PATH or of the CUDA toolkit. Raises UserError saying what to install."""
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    for candidate in ("compute-sanitizer", *(f"{home}/bin/compute-sanitizer" for home in homes if home)):
        found = shutil.which(candidate)
        if found:
            return Path(found)
    raise UserError(
        "compute-sanitizer is not on the PATH nor under CUDA_HOME: it comes with the CUDA toolkit; "
        "install that, or NVIDIA's package cuda-sanitizer-13-0"
    )


def watch(
    tool: Path, check: str, request: Request, slot: int, stop: threading.Event, seconds: float = SECONDS
) -> Watched:
    """Run a request in a process of its own under the tool, to its end or until ``stop`` is set.

    ``slot`` tells processes apart that run side by side.
    """
    with tempfile.TemporaryDirectory(prefix="groundspeed-sanitize-") as name:
        folder = Path(name)
        (folder / "request.json").write_bytes(msgspec.json.encode(request))
        command = sanitizer_command(tool, check, folder, slot)
        environment = worker_environment({**_VARIABLES, **request.variables})
        status, ended = _run(command, environment, folder / "output.txt", stop, seconds)
        log = folder / "log.txt"
        written = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        printed = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
        found = parse_log(written or printed)  # it may say why on the terminal only
        if status == _FOUND and found.clean:
            found = dataclasses.replace(found, problem=f"exit status {status} says errors, and its log shows none")
        last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
        return Watched(found, tuple(read_events(folder / "events.jsonl")), ended, last[:300])


def sanitizer_command(tool: Path, check: str, folder: Path, slot: int) -> list[str]:
    """The whole command; the request is read from ``folder``, log and events are left in it.

    API errors are not reported: torch makes calls that are meant to fail, and a launch that fails raises in ``run``.
    """
    return [
        *(str(tool), "--tool", check),
        *("--log-file", str(folder / "log.txt")),
        *("--error-exitcode", str(_FOUND)),
        *("--print-limit", "1000"),
        *("--show-backtrace", "device"),
        *("--launch-timeout", "0"),
        *("--port", str(_FIRST_PORT + _PORTS * slot), "--max-connections", str(_PORTS)),
        *(("--report-api-errors", "no", "--padding", str(_PADDING)) if check == "memcheck" else ()),
        *(sys.executable, "-m", "groundspeed.sanitizer.child"),
        *(str(folder / "request.json"), str(folder / "events.jsonl")),
    ]


def _run(
    command: list[str], environment: dict[str, str], output: Path, stop: threading.Event, seconds: float
) -> tuple[int, str]:
    """Run it to its end, or end it; its exit status, and why it was ended."""
    if stop.is_set():
        return -signal.SIGKILL, "interrupted"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    deadline = monotonic() + seconds
    try:
        while monotonic() < deadline and not stop.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=_LOOK), ""
        return -signal.SIGKILL, "interrupted" if stop.is_set() else f"no end after {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
