"""The distance of an output from the oracle's answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from groundspeed.operator import Tolerance
from groundspeed.records import Accuracy

# Elements compared at once: an error over 3 GB must not need 25 GB of float64, and a CPU wants its caches.
_CHUNK = {"cuda": 1 << 26, "cpu": 1 << 18}


@dataclass(frozen=True)
class Errors:
    """Sums and maxima over all elements of all outputs.

    not_finite
        Elements that are NaN or infinite where the reference is finite.
    not_equal
        Elements that differ from a reference that is NaN or infinite.
    """

    accuracy: Accuracy
    not_finite: int
    not_equal: int

    @classmethod
    def of(cls, outputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], tolerance: Tolerance) -> Errors:
        """Compare outputs with the oracle's, element by element in memory order of the indices.

        Shapes and the number of outputs are checks of their own: elements beyond the shorter of two are not looked at.
        """
        total = _Total()
        for out, ref in zip(outputs, expected, strict=False):
            for piece, wanted in _chunks(out, ref):
                total.add(piece, wanted, tolerance)
        return total.result()


class _Total:
    def __init__(self) -> None:
        self.max_abs = self.max_rel = self.used = 0.0
        self.square = self.reference_square = 0.0
        self.not_finite = self.not_equal = 0

    def add(self, out: torch.Tensor, ref: torch.Tensor, tolerance: Tolerance) -> None:
        wide, ref = out.to(ref.device, torch.float64), ref.to(torch.float64)
        difference, size = wide - ref, ref.abs()
        # A finite sum has finite terms only, whichever they are; one that overflowed just takes the longer way.
        if not math.isfinite(float(difference.sum() + size.sum())):
            usable = self._special(out, wide, ref)
            difference = torch.where(usable, difference, 0.0)
            size = torch.where(usable, size, 0.0)
        difference = difference.abs_()
        largest, square = float(difference.max()), float(size.square().sum())
        self.reference_square += square
        if largest == 0:
            return
        tiny = torch.finfo(out.dtype).tiny if out.is_floating_point() else 1.0
        allowed = tolerance.atol + tolerance.rtol * size
        relative = torch.where(size > tiny, difference / size, 0.0)
        used = difference / allowed if tolerance.atol else torch.where(difference > 0, difference / allowed, 0.0)
        self.max_abs = max(self.max_abs, largest)
        self.max_rel = max(self.max_rel, float(relative.max()))
        self.used = max(self.used, float(used.max()))
        self.square += float(difference.square().sum())

    def _special(self, out: torch.Tensor, wide: torch.Tensor, ref: torch.Tensor) -> torch.Tensor:
        """Count what is wrong at NaNs and infinities; returns where ordinary errors can be taken."""
        finite = torch.isfinite(ref)
        usable = finite & torch.isfinite(wide)
        same = (wide == ref) | (torch.isnan(wide) & torch.isnan(ref))
        # A reference beyond the dtype's range rounds to infinity: an infinite output of its sign is then right.
        overflow = (
            torch.isinf(wide) & (ref.abs() >= torch.finfo(out.dtype).max) & (wide.sign() == ref.sign())
            if out.is_floating_point()
            else torch.zeros_like(finite)
        )
        self.not_equal += int((~finite & ~same).sum())
        self.not_finite += int((finite & ~usable & ~overflow).sum())
        return usable

    def result(self) -> Errors:
        if self.reference_square:
            norm = math.sqrt(self.square / self.reference_square)
        else:
            norm = math.inf if self.square else 0.0
        return Errors(Accuracy(self.max_abs, self.max_rel, norm, self.used), self.not_finite, self.not_equal)


def _chunks(out: torch.Tensor, ref: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    flat, wanted = out.reshape(-1), ref.reshape(-1)
    step = _CHUNK.get(ref.device.type, 1 << 22)
    for start in range(0, min(flat.numel(), wanted.numel()), step):
        stop = min(start + step, flat.numel(), wanted.numel())
        yield flat[start:stop], wanted[start:stop]
