"""What a rank answers to an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundspeed.measure.bench import Fault


@dataclass(frozen=True)
class Answer:
    """What a rank makes of an order: a value, or why there is none; ``over`` says that the rank ends with it."""

    value: Any = None
    fault: Fault | None = None
    over: bool = False
