"""A GPU that is a clock: a host and a device with a time each, for the timers that time by events and graphs.

The device runs what it is given in order and waits for the host when it has nothing; the host waits only when it
synchronises. All times are nanoseconds.
"""

from __future__ import annotations

from types import SimpleNamespace

LAUNCH, RECORD, QUERY = 2_000.0, 500.0, 200.0  # what each takes the host
SPIN_CYCLES = 1e-3  # a nanosecond, as a clock rate of 1000 kHz


class FakeGpu:
    """``busy`` is when the current stream runs dry, ``side`` when the others do."""

    def __init__(self) -> None:
        self.host = self.busy = self.side = 0.0
        self.capturing: list[float] | None = None
        self.captured: list[int | None] = []  # launches of each capture that ended; None for one that failed
        self.spins: list[float] = []
        self.log: list[str] = []

    def launch(self, duration: float, name: str = "work", host: float = LAUNCH) -> None:
        self.host += host
        if self.capturing is not None:
            self.capturing.append(duration)
            return
        self.busy = max(self.host, self.busy) + duration
        self.log.append(name)

    def launch_aside(self, duration: float) -> None:
        """On another stream, which waits for the current one and for which nothing waits."""
        self.host += LAUNCH
        self.side = max(self.host, self.busy, self.side) + duration

    def synchronize(self) -> None:
        self.host = max(self.host, self.busy, self.side)

    def sleep(self, cycles: int) -> None:
        self.spins.append(cycles / SPIN_CYCLES)
        self.launch(cycles / SPIN_CYCLES, "spin")


def install(monkeypatch, gpu: FakeGpu):
    """Put it in the place of torch.cuda."""
    import torch

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            self.timed = enable_timing

        def record(self) -> None:
            gpu.host += RECORD
            self.at = max(gpu.host, gpu.busy)

        def query(self) -> bool:
            gpu.host += QUERY
            return gpu.host >= self.at

        def synchronize(self) -> None:
            gpu.host = max(gpu.host, self.at)

        def elapsed_time(self, other) -> float:
            assert self.timed and other.timed and gpu.host >= other.at, "read before the device was done"
            return (other.at - self.at) * 1e-6

    class Graph:
        def capture_begin(self, pool=None) -> None:
            gpu.capturing = []

        def capture_end(self) -> None:
            self.work, gpu.capturing = gpu.capturing, None
            gpu.captured.append(len(self.work) if self.work else None)

        def replay(self) -> None:
            gpu.launch(sum(self.work) + 5_000.0, f"graph of {len(self.work)}", host=10_000.0)

    class Stream:
        cuda_stream = 13

        def wait_stream(self, other) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *error) -> None: ...

    for name, value in {
        "synchronize": gpu.synchronize,
        "_sleep": gpu.sleep,
        "Event": Event,
        "CUDAGraph": Graph,
        "Stream": Stream,
        "stream": lambda stream: stream,
        "current_stream": Stream,
        "current_device": lambda: 0,
        "graph_pool_handle": lambda: (0, 1),
        "get_device_properties": lambda device: SimpleNamespace(clock_rate=SPIN_CYCLES * 1e6, L2_cache_size=50 << 20),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return gpu
