"""The nursery: a process that has done a worker's imports and forks one worker after another from there.

Started as ``python -m groundspeed.measure.nursery FD IMPORTS``; FD is its end of a socket on which
groundspeed.measure.forked asks, IMPORTS one of preload.Imports. It never has a job, a device or a thread of its own, so
that each child begins as a freshly started worker does, with the imports behind it. Whether that holds is looked at
before the first fork; a nursery that finds a thread or an initialised CUDA driver in itself refuses to serve.

A child's exit status is collected only when asked for: until then its process id cannot be another's.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import re
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from groundspeed.measure import preload
from groundspeed.measure.nursery_protocol import MOST_BYTES, Collect, Collected, Fork, Forked, Serving, decode_request

_CUDA_ERROR_NOT_INITIALIZED = 3  # CUresult, CUDA driver API
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"  # torch.cuda.is_available reads it at each call


def main() -> NoReturn:
    control = socket.socket(fileno=int(sys.argv[1]))
    importlib.import_module("numpy")  # its linear algebra keeps threads, which it ends by itself around a fork
    before = _threads()
    preload.work()
    if sys.argv[2] == "front end":
        preload.front_end()
    elif sys.argv[2] == "compiler":
        with _devices_as_told():
            preload.compiler()
    control.send(msgspec.json.encode(Serving(refusal=unsafe(before))))
    # What is here stays shared between all children: a collection would write to every page of it.
    gc.collect()
    gc.freeze()
    serve(control)
    os._exit(0)


@contextmanager
def _devices_as_told() -> Iterator[None]:
    """Have torch answer whether there is a GPU without asking the driver, where this process was given one by name.

    One of the compiler's imports asks (torch._inductor.runtime.benchmarking), and what it is told stays. On an H200 a
    thread of the driver's was there behind that import, although NVML was asked: because of it nurseries with the
    compiler's imports were refused. Who was given no GPU by name has NVML asked, which at least leaves CUDA alone:
    PyTorch documents the variable for forked processes that fail with a CUDA initialization error ("CUDA environment
    variables").
    """
    import torch

    given = re.match(r"GPU-|MIG-|\d", os.environ.get(_VISIBLE, "")) and torch.version.cuda is not None
    before, asked = os.environ.get(_BY_NVML), torch.cuda.is_available
    os.environ[_BY_NVML] = "1"
    if given:
        torch.cuda.is_available = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_available = asked
        if before is None:
            del os.environ[_BY_NVML]
        else:
            os.environ[_BY_NVML] = before


def unsafe(threads: int) -> str:
    """Why a child forked now would not be as good as a process started anew; empty when it would.

    ``threads`` is how many there may be.
    """
    if _threads() > threads:
        return f"its imports started {_threads() - threads} threads"
    if cuda_is_initialised():
        return "its imports initialised CUDA"
    return ""


def cuda_is_initialised() -> bool:
    """Whether the driver library is loaded in this process and has been initialised: a fork would inherit it broken."""
    if "libcuda.so" not in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"):
        return False
    context = ctypes.c_void_p()
    status = ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context))
    return bool(status != _CUDA_ERROR_NOT_INITIALIZED)


def serve(control: socket.socket) -> None:
    """Answer requests until the other end is closed. Children end with this process, and so with whom it serves."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, maxfds=3)
        if not data:
            return
        match decode_request(data):
            case Fork():
                answer: Forked | Collected = Forked(_fork(control, *descriptors))
            case Collect(pid):
                answer = Collected(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        control.send(msgspec.json.encode(answer))


def _fork(control: socket.socket, job: int, events: int, log: int) -> int:
    nursery = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            _become_worker(job, events, log, nursery)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    with suppress(ProcessLookupError, PermissionError):  # the child does it too: whoever comes first
        os.setpgid(pid, pid)
    for descriptor in (job, events, log):
        os.close(descriptor)
    return pid


def _become_worker(job: int, events: int, log: int, nursery: int) -> NoReturn:
    """The descriptors are those that a started worker has: its standard input, its events, its log."""
    from groundspeed.measure import worker

    with suppress(PermissionError):
        os.setpgid(0, 0)  # so that what it starts can be ended with it
    worker.end_with(nursery)
    for source, target in ((job, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(job)
    os.close(log)
    worker.serve(events, sys.stdin.buffer)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


if __name__ == "__main__":
    main()
