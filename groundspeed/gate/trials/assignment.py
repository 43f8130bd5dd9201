"""Which size is planted where: all cases of an implementation and dtype have one, and the next round turns them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groundspeed.gate.trials.apart import QUANTITY
from groundspeed.gate.trials.plant import Plant

SIZES = (0.02, 0.03, 0.05, 0.10)
DTYPES = ("float32", "float16")
THRESHOLDS = {0.02: 0.02}  # T of the gate by size; all other sizes have DEFAULT_T
DEFAULT_T = 0.03

Group = tuple[str, str]  # implementation, dtype


def sizes_of_round(plants: Sequence[Plant], turn: int) -> dict[Group, float]:
    """The size of each group of an operator in a round."""
    groups = [(plant.implementation, dtype) for plant in plants for dtype in DTYPES]
    return {group: SIZES[(number + turn) % len(SIZES)] for number, group in enumerate(groups)}


def policy(operator: str, sizes: Mapping[Group, float]) -> str:
    """The gate's policy as TOML: device time is judged, at 2 % where 2 % is planted."""
    lines = [
        "[tool.groundspeed.gate]",
        f'metrics = ["{QUANTITY}"]',
        'tier = "full"',
        "[tool.groundspeed.gate.thresholds]",
        f"{QUANTITY} = {DEFAULT_T}",
    ]
    for (implementation, dtype), size in sizes.items():
        if size in THRESHOLDS:
            lines += _override(operator, implementation, dtype, THRESHOLDS[size])
    return "\n".join([*lines, ""])


def _override(operator: str, implementation: str, dtype: str, threshold: float) -> Iterable[str]:
    return (
        "[[tool.groundspeed.gate.override]]",
        f'operator = "{operator}"',
        f'implementation = "{implementation}"',
        f'dtype = "{dtype}"',
        f'metric = "{QUANTITY}"',
        f"threshold = {threshold}",
    )
