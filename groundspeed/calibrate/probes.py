"""The probes: calls of torch from about a microsecond to a millisecond on an H200. They need no build, so that they run
wherever torch does; torch is imported when one is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Run = Callable[[], Any]

_ITEMSIZE = {"float32": 4, "bfloat16": 2}
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Probe:
    """One call on inputs drawn from a seed. ``shape`` names the input's extents; a matmul multiplies two of them."""

    name: str
    operation: str
    dtype: str
    shape: tuple[tuple[str, int], ...]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(extent for _, extent in self.shape)

    @property
    def shape_label(self) -> str:
        return ",".join(f"{name}={extent}" for name, extent in self.shape)

    @property
    def memory_bound(self) -> bool:
        return self.operation != "matmul"

    @property
    def input_bytes(self) -> int:
        return (1 if self.memory_bound else 2) * math.prod(self.extents) * _ITEMSIZE[self.dtype]

    def make(self, device: str, seed: int = 0) -> Run:
        """Draw the inputs and return the call."""
        import torch

        generator = torch.Generator(device=device).manual_seed(seed)

        def drawn() -> Any:
            values = torch.randn(self.extents, generator=generator, device=device)
            return values.to(getattr(torch, self.dtype))

        x = drawn()
        if self.operation == "relu":
            return lambda: torch.relu(x)
        if self.operation == "row_sum":
            return lambda: x.sum(dim=1)
        if self.operation == "softmax":
            return lambda: torch.softmax(x, dim=1)
        if self.operation == "matmul":
            y = drawn()
            return lambda: x @ y
        raise ValueError(f"no probe does {self.operation!r}")


def _relu(name: str, size: int) -> Probe:
    return Probe(f"relu_{name}", "relu", "float32", (("N", size // 4),))


def _rows(operation: str, name: str, M: int, N: int) -> Probe:
    return Probe(f"{operation}_{name}", operation, "float32", (("M", M), ("N", N)))


def _matmul(n: int, dtype: str = "bfloat16") -> Probe:
    return Probe(f"matmul_{n}", "matmul", dtype, (("M", n), ("N", n)))


_GPU = (
    _relu("64KiB", 64 * KIB),
    _relu("1MiB", MIB),
    _relu("16MiB", 16 * MIB),
    _relu("64MiB", 64 * MIB),
    _relu("256MiB", 256 * MIB),
    _rows("row_sum", "4MiB", 1024, 1024),
    _rows("row_sum", "1GiB", 16384, 16384),
    _rows("softmax", "16MiB", 4096, 1024),
    _rows("softmax", "256MiB", 8192, 8192),
    _matmul(512),
    _matmul(2048),
    _matmul(4096),
    _matmul(8192),
)
_CPU = (
    _relu("64KiB", 64 * KIB),
    _relu("1MiB", MIB),
    _rows("row_sum", "4MiB", 1024, 1024),
    _rows("softmax", "1MiB", 256, 1024),
    _matmul(256, "float32"),
)


def probes_of(device: str) -> tuple[Probe, ...]:
    """The probes of ``cuda`` or ``cpu``, in the order in which they are measured."""
    return _GPU if device == "cuda" else _CPU


def named(device: str, names: tuple[str, ...]) -> tuple[Probe, ...]:
    return tuple(probe for probe in probes_of(device) if probe.name in names)
