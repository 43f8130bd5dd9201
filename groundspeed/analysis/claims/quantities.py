"""What a claim can be about: a quantity's unit, and which of two figures is the better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Quantity:
    """``unit`` as it is published and shown; ``meaning`` how ours is found, in the words of the screens."""

    unit: str
    better: Better
    meaning: str

    def show(self, value: float) -> str:
        """A value with its unit, three significant digits: ``2.38×``, ``89 %``, ``1,680 GB/s``."""
        digits = f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"  # which would round to 1e+03
        return f"{digits}{self.unit}" if self.unit == "×" else f"{digits} {self.unit}"


QUANTITIES = {
    "speedup": Quantity("×", "higher", "device time of the baseline over that of the implementation, caches cold"),
    "call speedup": Quantity("×", "higher", "time of a synchronised call of the baseline over the implementation's"),
    "memory": Quantity("×", "higher", "peak memory of the baseline over that of the implementation"),
    "energy": Quantity("×", "higher", "energy a call of the baseline over that of the implementation"),
    "throughput": Quantity("×", "higher", "items a second on some cases over those on others"),
    "training speedup": Quantity("×", "higher", "as speedup, of a forward pass and its backward pass together"),
    "training memory": Quantity("×", "higher", "as memory, of whichever of forward and backward pass holds more"),
    "rate": Quantity("TFLOP/s", "higher", "operations of the function over the device time"),
    "bandwidth": Quantity("GB/s", "higher", "bytes of the function over the device time"),
    "ceiling": Quantity("%", "higher", "least time that the ceilings measured in the run allow, over the device time"),
    "bandwidth ceiling": Quantity("%", "higher", "least time of the function's bytes alone, over the device time"),
    "launch": Quantity("µs", "lower", "host time to issue a call, for each of its kernels"),
    "registers": Quantity("registers", "lower", "registers a thread of its kernels, the most"),
    "intensity": Quantity("FLOP/B", "neither", "operations of the function over its bytes"),
    "ridge": Quantity("FLOP/B", "neither", "matmul rate over copy rate, both measured in the run"),
    "device bandwidth": Quantity("GB/s", "higher", "copy rate of the device, measured in the run"),
    "device rate": Quantity("TFLOP/s", "higher", "matmul rate of the device, measured in the run"),
    "kernel share": Quantity("%", "neither", "device time of some of a call's kernels over that of all"),
    "kernel count": Quantity("×", "neither", "number of some of a call's kernels over that of the others"),
    "launch share": Quantity("%", "neither", "what the device time leaves of a call's time"),
    "compute share": Quantity("%", "neither", "least time of the operations at the matmul rate over a call's time"),
    "memory share": Quantity("%", "neither", "what launches and least compute time leave of a call's time"),
}

TRAINING = ("training speedup", "training memory")
"""Quantities of a forward pass and its backward pass, two operators of ours."""

RATIOS = ("speedup", "call speedup", "memory", "energy", "throughput", *TRAINING)
"""Quantities that compare an implementation or a case with another one."""
