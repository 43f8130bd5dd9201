"""A GPU that is not there: Triton compiles for it, tunes on it and launches on it, and nothing runs.

All of Triton is its own but the driver: what loads a binary says how many registers it has, numbered as they are
loaded, and what launches puts down which binary that was.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SPILLS = 3  # registers that every kernel spills


class Device:
    """Triton's driver of it."""

    def __init__(self) -> None:
        self.launched: list[int] = []  # by their registers, which no two binaries share
        self.loaded = 0
        self.utils = types.SimpleNamespace(
            load_binary=self._load,
            unload_module=lambda module: None,
            get_device_properties=lambda device: {"max_shared_mem": 232448, "multiprocessor_count": 132},
        )

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        def launch(x: int, y: int, z: int, stream: int, function: int, *more: Any) -> None:
            self.launched.append(function)

        return launch

    def _load(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        self.loaded += 1
        registers = 16 + self.loaded
        return 1, registers, registers, SPILLS, 1024


@contextmanager
def device() -> Iterator[Device]:
    """Inside, Triton compiles and launches on it, whether it was imported to interpret or not."""
    import triton
    from triton.runtime.driver import driver

    one, before, interpret = Device(), driver._active, triton.knobs.runtime.interpret
    driver.set_active(one)
    triton.knobs.runtime.interpret = False
    try:
        yield one
    finally:
        driver._active = before
        triton.knobs.runtime.interpret = interpret
