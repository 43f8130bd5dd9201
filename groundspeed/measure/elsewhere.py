"""Memory that a call takes past torch's allocator: another library's, or what it asks the system for by itself."""

from __future__ import annotations

import contextlib
import ctypes
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from groundspeed.measure.kept import elsewhere_on_gpu
from groundspeed.measure.timers.base import Run

FLOOR = 4 << 20  # less is the driver's granularity, or the host's pages
_CALLS = 3  # on a GPU it is looked from time to time: a short call may be over before anybody has looked
_LOOK = 1e-4  # seconds between two looks: who looked without a pause would hold up the call in Python
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # proc(5)
_FORGET_PEAK = "5"


def past_allocator(run: Run, device: str, counted: int) -> int:
    """Most bytes that a call holds beside those that torch's allocator gave; 0 where it is less than can be told.

    ``counted`` is how many those were at most. On a CPU the pages that the process touches say what was used, whoever
    gave it, and where the system does not tell them nothing is seen.
    """
    if device == "cuda":
        seen = max(_on_gpu(run) for _ in range(_CALLS))
        return seen if seen >= FLOOR else 0
    touched = _on_cpu(run)
    # Pages are rounded up, by 2 MiB where they are huge ones.
    return touched - counted if touched - counted >= FLOOR + counted // 8 else 0


def _on_gpu(run: Run) -> int:
    torch.cuda.synchronize()
    device = torch.cuda.current_device()  # a thread has one of its own: the first GPU, whichever this rank works on

    def read() -> int:
        torch.cuda.set_device(device)
        return elsewhere_on_gpu()

    before = elsewhere_on_gpu()
    with highest(read) as seen:
        output = run()
        torch.cuda.synchronize()
    del output
    return seen() - before


@contextlib.contextmanager
def highest(read: Callable[[], int]) -> Iterator[Callable[[], int]]:
    """Read again and again meanwhile, and once more at the end; gives the highest value so far."""
    found = [read()]
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK):
            found[0] = max(found[0], read())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield lambda: found[0]
    finally:
        over.set()
        looking.join()
    found[0] = max(found[0], read())


def _on_cpu(run: Run) -> int:
    """Bytes of pages that the process did not have before and had at most during a call; 0 where nobody tells."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        return 0
    library.malloc_trim(ctypes.c_size_t(0))  # pages that are free on the heap would be used again unseen
    try:
        _CLEAR.write_text(_FORGET_PEAK)
    except OSError:
        return 0  # not every container lets a process forget it
    before = _kilobytes("VmRSS")
    output = run()
    most = _kilobytes("VmHWM")
    del output
    return 1024 * max(0, most - before)


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
